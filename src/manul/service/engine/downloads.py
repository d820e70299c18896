"""Models that were downloaded, and the check of decisions that were made with them elsewhere."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import math
import threading
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import numpy as np

from manul.errors import ManulError
from manul.service import wire
from manul.service.configuration import Limits
from manul.service.engine import loop_agent
from manul.service.engine.loop import Loop
from manul.service.engine.loop_agent import LoopAgent
from manul.service.engine.model import refusal
from manul.service.errors import Conflict, Invalid, Problem
from manul.service.store import Collision, DownloadPiece, LoopGone, Store, StoreFailure, Transaction
from manul.utils.model_files import PIECE

log = logging.getLogger("manul.service")
# Bytes of models that are kept loaded for checks, but at least one.
LOADED_BYTES = 64 * 2**20
# How much a density may differ from that of the model: a sum in another order differs by 1e-14.
DENSITY_TOLERANCE = 1e-9
Write = Callable[[Callable[[Transaction], None]], Awaitable[None]]


def signature_of(model: bytes) -> str:
    """The signature of a model: the SHA-256 of its bytes."""
    return hashlib.sha256(model).hexdigest()


class LoadedModel:
    """A model that was downloaded; several threads may ask it."""

    def __init__(self, model: bytes) -> None:
        self.size, self._agent, self._lock = len(model), loop_agent.from_bytes(model), threading.Lock()

    def densities(self, contexts: Sequence[Any], actions: Sequence[Any], withins: Sequence[Any]) -> list[float]:
        """The density of each action in its context, and in its narrower range if it had one."""
        agent: LoopAgent = self._agent
        with self._lock:
            if not agent.space.is_number:
                narrowed = list(withins) if any(withins) else None
                return agent.distributions(list(contexts), narrowed).density(list(actions)).tolist()  # type: ignore[no-any-return]
            ranges = np.array([each or agent.actions for each in withins]) if any(withins) else None
            return agent.distributions(list(contexts), ranges).density(np.array(actions)).tolist()  # type: ignore[no-any-return]


class Downloads:
    """Stores the models that callers download, and checks the decisions that they report of these."""

    def __init__(self, store: Store, limits: Limits, write: Write, now: Callable[[], float]) -> None:
        self._store, self._limits, self._write, self._now = store, limits, write, now
        self._loaded: dict[tuple[int, str], LoadedModel] = {}  # the latest one last
        self._lock = threading.Lock()

    async def keep(self, loop: Loop, model: bytes) -> str | None:
        """Store a model durably before it is sent; returns its signature, or None if the store does not take it now."""
        signature = await asyncio.to_thread(signature_of, model)
        try:
            if signature not in await asyncio.to_thread(self._store.downloads, loop.number):
                await self._add(loop.number, signature, model)
            known = signature in await asyncio.to_thread(self._store.downloads, loop.number)
        except LoopGone:
            raise
        except (Problem, StoreFailure, Collision):
            log.warning("a model that is downloaded could not be stored", extra={"loop": loop.name})
            return None
        return signature if known else None

    async def _add(self, loop: int, signature: str, model: bytes) -> None:
        """Write the pieces of a model in transactions of their own, so that decisions do not wait for all of them."""
        starts, time = range(0, len(model), PIECE), self._now()
        for place, start in enumerate(starts):
            piece = DownloadPiece(signature, place, len(starts), time, model[start : start + PIECE])

            def add(transaction: Transaction, piece: DownloadPiece = piece) -> None:
                transaction.add_download(loop, piece)
                if piece.place == piece.pieces - 1:
                    keep, most_bytes = self._limits.downloads, self._limits.download_bytes
                    transaction.trim_downloads(loop, keep=keep, most_bytes=most_bytes)

            await self._write(add)

    def check(self, loop: Loop, observations: Sequence[wire.NewObservation], *, alone: bool) -> None:
        """Refuse decisions of models that are not known, or with a density that the model does not give; it reads the store."""
        by_model: dict[str, list[int]] = {}
        for place, each in enumerate(observations):
            where = "" if alone else f"observations[{place}]."
            if each.model is not None:
                by_model.setdefault(each.model, []).append(place)
                _check_limits(loop, where)
                _check_stated(each, where)
            elif each.number is not None or each.copy is not None:
                name = "number" if each.copy is None else "copy"
                raise Invalid(
                    f"{name} is that of a decision of a downloaded model. Send its signature as model. A copy that has learned since has "
                    "none: download the model again, or send an id of your own instead of number and copy.",
                    where + name,
                )
        for signature, places in by_model.items():
            model = self._find(loop, signature, "" if alone else f"observations[{places[0]}].")
            self._check_densities(loop, model, observations, places, alone=alone)

    def _find(self, loop: Loop, signature: str, where: str) -> LoadedModel:
        key = (loop.number, signature)
        with self._lock:
            found = self._loaded.pop(key, None)
        if found is None:
            body = self._store.download(loop.number, signature)
            if body is None or signature_of(body) != signature:
                raise Conflict(
                    f"loop {loop.name!r} does not know the model {signature[:12]}…. It keeps the latest {self._limits.downloads} that "
                    "were downloaded, until it is reset. Download the model again.",
                    where + "model",
                )
            found = LoadedModel(body)
        with self._lock:
            self._loaded[key] = found
            while len(self._loaded) > 1 and sum(each.size for each in self._loaded.values()) > LOADED_BYTES:
                del self._loaded[next(iter(self._loaded))]
        return found

    def _check_densities(
        self,
        loop: Loop,
        model: LoadedModel,
        observations: Sequence[wire.NewObservation],
        places: Sequence[int],
        *,
        alone: bool,
    ) -> None:
        contexts, actions, withins = list[Any](), list[Any](), list[Any]()
        for place in places:
            where = "" if alone else f"observations[{place}]."
            given = observations[place]
            try:
                context, within = loop.model.context(given.context), loop.space.check_within(given.within)
                actions.append(loop.space.check_action(given.action, within, context))
            except ManulError as error:
                raise placed(error, where) from None
            contexts.append(context)
            withins.append(within)
        try:
            expected = model.densities(contexts, actions, withins)
        except ManulError:  # one of them is not for this model; find out which
            expected = [
                _alone(model, row, "" if alone else f"observations[{place}].")
                for place, *row in zip(places, contexts, actions, withins, strict=True)
            ]
        for place, density in zip(places, expected, strict=True):
            stated = _density(observations[place])
            if not math.isclose(density, stated, rel_tol=DENSITY_TOLERANCE):
                raise Invalid(
                    f"density must be {density:.12g}, which the model has for this action in this context, got {stated:.12g}.",
                    f"{'' if alone else f'observations[{place}].'}density",
                )


def _alone(model: LoadedModel, row: Sequence[Any], where: str) -> float:
    try:
        return model.densities(*([value] for value in row))[0]
    except ManulError as error:
        raise placed(error, where) from None


def placed(error: ManulError, where: str) -> Invalid:
    """An error about an element of a batch, whose field says which."""
    refused = refusal(error)
    return Invalid(str(refused), None if refused.field is None else where + refused.field)


def _density(given: wire.NewObservation) -> float:
    """The density that was stated: that of all knobs together."""
    return math.prod((given.densities or {}).values()) if given.density is None else given.density


def _check_limits(loop: Loop, where: str) -> None:
    """Refuse decisions that the account of a loop has not seen: each copy of its model would spend what is left once more."""
    if loop.settings.limits:
        name = "budget" if loop.settings.spend_at_most is not None else "rate to keep"
        raise Conflict(
            f"loop {loop.name!r} has a {name}, which counts only decisions that the loop makes itself, so its model must not "
            "decide elsewhere. Ask the loop for each decision.",
            where + "model",
        )


def _check_stated(given: wire.NewObservation, where: str) -> None:
    if given.density is None and given.densities is None:
        raise Invalid(
            "density must be given with a model: the one that the model drew the action with.", where + "density"
        )
    if given.id is None and given.number is None:
        raise Invalid(
            "number must be given with a model, that of the decision in its copy, so that it is learned once.",
            where + "number",
        )
