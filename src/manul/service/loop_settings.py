"""The settings of a new loop; those of its agent are generated from the registered agents and their constructors."""

from __future__ import annotations

import inspect
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, get_args

import msgspec
from msgspec import Meta

from manul.actions import schedules
from manul.actions.kinds import is_knob
from manul.actions.limits import MOST_LIMITS
from manul.agents.agent_registry import AGENTS, AgentEntry
from manul.outcomes import Combination, Outcome, Wait
from manul.outcomes.budgets import Late
from manul.service.wire import (
    Actions,
    Formula,
    Hints,
    Keep,
    Knob,
    LossRange,
    Name,
    PartKinds,
    Parts,
    Request,
    Schedule,
    Share,
    SpendAtMost,
)
from manul.utils.formulas import MOST_CHARACTERS


class PriorLoop(Request):
    """A loop whose present model the agent of a new loop starts from, until evidence drops it."""

    loop: Name


LIMITS = ("spend_at_most", "keep", "late", "carry", "decline", "zone")  # settings of limits in expectation
KnobValue = float | str | bool
# Settings with bounds that the types of the constructors do not express.
BOUNDED: dict[str, Any] = {
    "bandwidth": Annotated[float, Meta(gt=0)],
    "half_life": Annotated[float, Meta(ge=1)] | None,
    "leaves": Annotated[int, Meta(ge=2, le=2**16)],
    "limits": Annotated[list[Annotated[str, Meta(max_length=MOST_CHARACTERS)]], Meta(max_length=MOST_LIMITS)] | None,
    "nearby": Annotated[float, Meta(ge=0, lt=1)] | None,
    "prior": PriorLoop | None,
    "seed": Annotated[int, Meta(ge=0, le=2**63 - 1)],
    "start": KnobValue | dict[str, KnobValue] | None,
}


def _field_type(name: str, annotation: Any) -> Any:
    if name != "epsilon":
        return BOUNDED.get(name, annotation)
    # The schedules of the package as a struct, and the other choices as the constructor has them.
    others = [Schedule if each is schedules.Schedule else each for each in get_args(annotation) if each is not float]
    return Union[(Share, *others)]


def _settings_type(entry: AgentEntry) -> type[msgspec.Struct]:
    parameters = entry.parameters
    required = [name for name in entry.settings if parameters[name].default is inspect.Parameter.empty]
    optional = [name for name in entry.settings if name not in required]
    fields: list[Any] = [(name, _field_type(name, parameters[name].annotation)) for name in required]
    for name in ("epsilon", "seed", *optional):
        fields.append((name, _field_type(name, parameters[name].annotation), parameters[name].default))
    summary = (inspect.getdoc(entry.make) or entry.name).partition("\n")[0]
    return msgspec.defstruct(
        entry.make.__name__,
        fields,
        bases=(Request,),
        namespace={"__doc__": summary},
        tag=entry.name,
        tag_field="kind",
        kw_only=True,
    )


KINDS = {entry.name: _settings_type(entry) for entry in AGENTS if entry.service}
if TYPE_CHECKING:
    AgentSettings = msgspec.Struct
else:
    AgentSettings = Union[tuple(KINDS.values())]  # noqa: UP007 - a union of a variable number of types


class NewLoop(Request, kw_only=True, dict=True):
    """A decision problem. With a `wait`, a loss is learned so many seconds after its decision, whenever it was reported until
    then; a decision without a loss gets `default_loss`. Without a wait, a loss is learned as soon as it is reported.

    A loop has `losses` or `rewards`, by default losses in [0, 1]; Auto also takes "auto", any finite numbers. A reward
    is stored as a negative loss. With a `formula`, it is computed from `parts`, which are reported instead; `hints` say that a part
    rises or falls with the action, and `default_parts` are the values of parts that were not reported by the end of the wait.

    `spend_at_most` is a budget, and `keep` a bound on the mean of a second outcome, as those of `manul.Auto`. `late` says what is
    held back for decisions whose cost is not known yet: without it, the most that they can cost; "reserve", what is expected and a
    margin; "carry", what is expected, and the next period gets the error. With `carry`, a period leaves its rest to the next one.
    `decline` is the action that spends nothing, by default an end of the range, and `zone` the time zone of the period, by default UTC.
    """

    name: Name
    actions: Actions
    losses: LossRange | None = None
    rewards: LossRange | None = None
    agent: AgentSettings | Literal["auto"] = "auto"
    wait: Annotated[float, Meta(gt=0, le=1e9)] | None = None
    default_loss: float | None = None
    default_reward: float | None = None
    combine: Combination = "first"
    apprentice: bool = False
    formula: Formula | None = None
    parts: PartKinds | None = None
    hints: Hints | None = None
    default_parts: Parts | None = None
    spend_at_most: SpendAtMost | None = None
    keep: Keep | None = None
    late: Late | None = None
    carry: bool = False
    decline: float | None = None
    zone: str | None = None

    def __post_init__(self) -> None:
        if isinstance(self.actions, dict):
            self.actions = _with_knobs(self.actions)
        if self.rewards is None:
            self.losses = (0.0, 1.0) if self.losses is None else self.losses
            if self.default_reward is not None:
                raise ValueError("default_reward needs a loop with rewards. Set default_loss")
            return
        if self.losses is not None:
            raise ValueError("losses and rewards exclude each other. Set one of them")
        if self.default_loss is not None:
            raise ValueError("default_loss needs a loop with losses. Set default_reward")
        sign = Outcome(better="high", range="auto")  # the ranges are checked later, with errors that name their setting
        self.losses = self.rewards if isinstance(self.rewards, str) else sign.flip(self.rewards)
        self.default_loss = None if self.default_reward is None else sign.to_loss(self.default_reward)

    @cached_property
    def auto(self) -> msgspec.Struct:
        """What the agent "auto" stands for: Auto with default settings."""
        return KINDS["auto"]()

    @property
    def learned(self) -> Outcome:
        """The outcome that the agent learns from, which does not wait."""
        plain = Outcome.of(**({"losses": self.losses} if self.rewards is None else {"rewards": self.rewards}))
        if self.formula is None and not self.parts and not self.hints:
            return plain
        return replace(plain, formula=self.formula, parts=self.parts or {}, hints=self.hints or {})

    @property
    def limits(self) -> dict[str, Any]:
        """The limits in expectation of the agent, with their settings."""
        given = msgspec.structs.asdict(self)
        return {name: given[name] for name in LIMITS if given[name] is not None and given[name] is not False}

    @cached_property
    def outcome(self) -> Outcome:
        """The outcome of decisions."""
        if self.wait is None:
            return self.learned
        default: Any = self.default_loss if self.rewards is None else self.default_reward
        default = default if self.default_parts is None else self.default_parts
        return replace(self.learned, wait=Wait(self.wait, default, self.combine))


def _with_knobs(actions: dict[str, Any]) -> Any:
    """One knob, or knobs by name with ranges as pairs of numbers; what is no knob stays, and is refused later."""
    if not any(isinstance(value, Knob) for value in actions.values()) and is_knob(actions):
        with suppress(msgspec.ValidationError):
            return msgspec.convert(actions, Knob)
    return {name: _pair(value) if isinstance(value, list) else value for name, value in actions.items()}


def _pair(ends: list[Any]) -> Any:
    return tuple(map(float, ends)) if len(ends) == 2 and not any(isinstance(end, str | bool) for end in ends) else ends


def stored_body(settings: NewLoop) -> bytes:
    """The settings of a loop as they are stored. One knob without a name is stored under an empty one, because earlier
    versions had ranges named "options"."""
    one = isinstance(settings.actions, Knob)
    return msgspec.json.encode(msgspec.to_builtins(settings) | {"actions": {"": settings.actions}} if one else settings)


def stored_loop(body: bytes) -> NewLoop:
    """The settings of a stored loop, which contain the losses that were derived from its rewards."""
    fields = msgspec.json.decode(body, type=dict[str, Any])
    if fields.get("rewards") is not None:
        fields.update(losses=None, default_loss=None)
    actions = fields["actions"]
    settings = msgspec.convert(fields, NewLoop)
    if isinstance(actions, dict):
        named: Any = msgspec.convert(actions, dict[str, tuple[float, float] | Knob])
        settings.actions = named.get("", named)
    if "rewards" not in fields:  # then it is from before the exploration of Auto faded
        settings.auto = KINDS["auto"](epsilon=0.05)
    return settings


def prior_loop(loop: NewLoop) -> str | None:
    """The loop whose model the agent starts from."""
    prior = agent_settings(loop).get("prior")
    return None if prior is None else prior["loop"]


def agent_settings(loop: NewLoop) -> dict[str, Any]:
    """The kind and the settings of a loop's agent."""
    settings: dict[str, Any] = msgspec.to_builtins(loop.auto if isinstance(loop.agent, str) else loop.agent)
    return settings
