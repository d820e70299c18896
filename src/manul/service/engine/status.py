"""The status of a loop."""

from __future__ import annotations

from manul.service import wire
from manul.service.engine.loop import Loop
from manul.service.loop_settings import agent_settings
from manul.service.store import Store


def status(store: Store, loop: Loop) -> wire.Status:
    """The current status of a loop; reads the store."""
    counts, settings = store.counts(loop.number), loop.settings
    assert settings.losses is not None
    return wire.Status(
        name=loop.name,
        actions=settings.actions,
        losses=settings.losses,
        rewards=settings.rewards,
        agent=agent_settings(settings),
        combine=settings.combine,
        wait=settings.wait,
        default_loss=settings.default_loss,
        apprentice=loop.apprentice,
        paused=loop.paused,
        created=loop.created,
        decisions=counts.decisions,
        learned=loop.model.learned,
        waiting=counts.decisions - counts.outcomes,
        mean_loss=counts.loss_sum / counts.outcomes if counts.outcomes else None,
        late=counts.late,
        defaulted=counts.defaulted,
        refused=loop.model.refused,
        events=counts.events,
        model=loop.model.event,
        width=loop.model.agent.width,
        epsilon=loop.model.agent.current_epsilon,
    )
