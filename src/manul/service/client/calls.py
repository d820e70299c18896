"""The methods that both clients have: what each sends, and what it returns. Nothing here opens a connection."""

from __future__ import annotations

import base64
import math
import uuid
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, TypeAlias, TypeVar, Unpack
from urllib.parse import quote

import httpx
import msgspec
import numpy as np

from manul.actions.decision import Within
from manul.actions.kinds.knob import Knob
from manul.actions.space import ActionSpace
from manul.agents.rollout.rollout_plan import PlanSettings
from manul.contexts.dates import to_json
from manul.errors import FileError, InputError, ParameterError
from manul.outcomes import AnyRange, Combination, Direction, Outcome, PartKind, PartValue
from manul.outcomes.budgets import Late, Period, Sign
from manul.service import wire
from manul.service.client.exchange import Exchange, Request, call, decode, send
from manul.service.rollout_schema import Rollout
from manul.utils.validation import Floats

T = TypeVar("T")
Context: TypeAlias = Sequence[float] | Floats | Mapping[str, Any] | None
Action: TypeAlias = wire.Option | Mapping[str, wire.Option]
Narrowing: TypeAlias = Sequence[wire.Option] | Mapping[str, Sequence[wire.Option]]
DecisionOrId: TypeAlias = wire.Decision | wire.Observed | str
# Elements of one request of `decide_many` and `report_losses`.
BATCH = 1000


class Calls:
    """The calls of a loop. Each returns its result, or a coroutine of it from an AsyncClient."""

    def __init__(self, url: str, token: str | None, timeout: float, retries: int) -> None:
        if not url.startswith(("http://", "https://")):
            raise ParameterError(
                f"url must start with http:// or https://, got {url!r}. Example: http://127.0.0.1:8000.", "url"
            )
        self._retries = retries
        # Any number of calls may wait for a free connection; every other step of a request has a time limit.
        self._http_settings: Any = {
            "base_url": url.rstrip("/"),
            "headers": {} if token is None else {"Authorization": f"Bearer {token}"},
            "timeout": httpx.Timeout(timeout, pool=None),
        }

    @call
    def create(
        self,
        name: str,
        *,
        actions: Within | Knob[Any] | ActionSpace[Any] | Mapping[str, Any],
        losses: AnyRange | None = None,
        rewards: AnyRange | None = None,
        agent: str | Mapping[str, Any] = "auto",
        wait: float | None = None,
        default_loss: float | None = None,
        default_reward: float | None = None,
        combine: Combination = "first",
        apprentice: bool = False,
        formula: str | None = None,
        parts: Mapping[str, PartKind] | None = None,
        hints: Mapping[str, Direction] | None = None,
        default_parts: Mapping[str, PartValue] | None = None,
        outcome: Outcome | None = None,
        spend_at_most: tuple[str, float, Period] | None = None,
        keep: tuple[str, Sign, float] | None = None,
        late: Late | None = None,
        carry: bool = False,
        decline: float | None = None,
        zone: str | None = None,
    ) -> Exchange[wire.Status]:
        """Create a loop, `name`, of `losses` or `rewards`, their range or "auto"; if it exists with the same settings, return it.

        `actions` are a range, `Stepped` or `Choice`, or several of these by name. The `agent` is a name, or an object
        with its `kind` and settings. With a `wait`, a loss is learned so many seconds after its decision, and a decision without
        one gets the `default_loss` or `default_reward`; `combine`, "first", "last", "sum" or "mean", says what counts if there are
        several. An `apprentice` learns from what it observes, and decides once it is promoted. A `formula` computes the loss or
        reward from `parts`, whose `hints` are directions, and `default_parts` are those that were not reported by the end of the
        wait. An `outcome`, such as `manul.Sale(cost=20.0)`, says all this, and losses or rewards, in one.

        `spend_at_most`, such as ("won * action", 2000.0, "day"), is a budget, and `keep`, such as ("bought", ">=", 0.05), a bound on
        the mean of a second outcome, as those of `manul.Auto`. `late`, "reserve" or "carry", says what is held back for decisions whose
        cost is not known yet, by default the most that they can cost; with `carry`, a period leaves its rest to the next one;
        `decline` is the action that spends nothing, and `zone` the time zone of the period.
        """
        limits = {"spend_at_most": spend_at_most, "keep": keep, "late": late, "decline": decline, "zone": zone}
        given = {each: value for each, value in limits.items() if value is not None} | (
            {"carry": True} if carry else {}
        )
        stated: dict[str, Any] = {"losses": losses, "rewards": rewards, "wait": wait, "default_loss": default_loss}
        stated |= {"default_reward": default_reward, "formula": formula, "parts": parts, "hints": hints}
        stated |= {"default_parts": default_parts}
        stated = {each: value for each, value in stated.items() if value is not None}
        if outcome is not None:
            for each in stated:
                raise ParameterError(f"outcome and {each} exclude each other: an outcome says both.", "outcome")
            stated = {"combine": combine, **_outcome_settings(outcome)}
        else:
            stated["combine"] = combine
        settings = {"name": name, "actions": _described(actions), "agent": agent, "apprentice": apprentice, **stated}
        settings |= given
        return (yield from self._post("/v1/loops", settings, wire.Status))

    @call
    def loops(self) -> Exchange[list[wire.Status]]:
        """Return the status of every loop."""
        return (yield from self._get("/v1/loops", wire.Loops)).loops

    @call
    def status(self, loop: str) -> Exchange[wire.Status]:
        """Return the status of a `loop`."""
        return (yield from self._get(_path(loop), wire.Status))

    @call
    def decide(
        self,
        loop: str,
        context: Context = None,
        *,
        within: Narrowing | None = None,
        id: str | None = None,  # noqa: A002
        action: Action | None = None,
        at: datetime | None = None,
    ) -> Exchange[wire.Decision]:
        """Decide for a `loop` in a `context`, `within` a narrower range if given.

        An `id` seeds the randomness: the same request with the same id gets the same decision. `action` is what
        you would choose yourself, for a rollout with the baseline "caller". `at` is the time of the decision, now by default, for
        a loop with a budget.
        """
        body: dict[str, Any] = {"context": to_json(context), "within": within, "id": id or _new_id()}
        body |= {} if action is None else {"action": action}
        body |= {} if at is None else {"at": at}
        return (yield from self._post(_path(loop, "decisions"), body, wire.Decision))

    @call
    def decide_many(
        self,
        loop: str,
        contexts: Sequence[Context] | Floats,
        *,
        withins: Sequence[Narrowing | None] | None = None,
        ids: Sequence[str] | None = None,
        actions: Sequence[Action] | None = None,
        ats: Sequence[datetime] | None = None,
    ) -> Exchange[list[wire.Decision]]:
        """Decide for a `loop` in many `contexts`, a thousand per request; `withins`, `ids`, `actions` and `ats` are those of `decide`
        for each."""
        columns: dict[str, Any] = {"context": contexts, "within": withins, "id": ids, "action": actions, "at": ats}
        for name, column in columns.items():
            if column is not None and len(column) != len(contexts):
                raise ParameterError(
                    f"{name}s must have one value per context ({len(contexts)}), got {len(column)}.", f"{name}s"
                )
        columns["context"] = [to_json(context) for context in contexts]
        rows = [
            {name: column[place] for name, column in columns.items() if column is not None}
            for place in range(len(contexts))
        ]
        decisions: list[wire.Decision] = []
        for batch in _batches([{"id": _new_id()} | row for row in rows]):
            path = _path(loop, "decisions", "batch")
            decisions += (yield from self._post(path, {"decisions": batch}, wire.Decisions)).decisions
        return decisions

    @call
    def report_loss(
        self,
        loop: str,
        decision: DecisionOrId,
        loss: float | None = None,
        *,
        reward: float | None = None,
        parts: Mapping[str, PartValue] | None = None,
        key: str | None = None,
    ) -> Exchange[wire.Loss]:
        """Report the `loss` of a `decision` of a `loop`, its `reward` if the loop has rewards, or `parts` if it has a formula.

        If a loop combines losses, `key` distinguishes a repeat from another loss.
        """
        path = _path(loop, "decisions", _id_of(decision), "loss")
        body = _finite({"loss": loss, "reward": reward, "key": key or _new_id()})
        return (yield from self._post(path, body | ({} if parts is None else {"parts": parts}), wire.Loss))

    @call
    def report_losses(
        self,
        loop: str,
        losses: Sequence[tuple[DecisionOrId, float]] = (),
        *,
        rewards: Sequence[tuple[DecisionOrId, float]] = (),
        parts: Sequence[tuple[DecisionOrId, Mapping[str, PartValue]]] = (),
    ) -> Exchange[list[wire.Loss]]:
        """Report many `losses`, `rewards` or `parts` of a `loop`, each with its decision, a thousand per request."""
        outcomes: list[tuple[str, DecisionOrId, Any]] = [("loss", *each) for each in losses]
        outcomes += [("reward", *each) for each in rewards]
        outcomes += [("parts", *each) for each in parts]
        rows = [
            _finite({"id": _id_of(decision), name: value, "key": _new_id()}, f"losses[{place}].")
            for place, (name, decision, value) in enumerate(outcomes)
        ]
        answers: list[wire.Loss] = []
        for batch in _batches(rows):
            answers += (yield from self._post(_path(loop, "losses"), {"losses": batch}, wire.Losses)).losses
        return answers

    @call
    def observe(
        self,
        loop: str,
        context: Context = None,
        *,
        action: Action,
        density: float | None = None,
        densities: Mapping[str, float] | None = None,
        floor: float | None = None,
        within: Narrowing | None = None,
        loss: float | None = None,
        reward: float | None = None,
        parts: Mapping[str, PartValue] | None = None,
        id: str | None = None,  # noqa: A002
        model: str | None = None,
        number: int | None = None,
        copy: str | None = None,
    ) -> Exchange[wire.Observed]:
        """Report an `action` that the caller chose itself in a `context`, for the apprentice of a `loop` to learn from.

        `density`, `densities` of several knobs, `floor` and `within` are those of a `Decision`, if known. The `loss`, the
        `reward` or the `parts` may also be reported later. An action with the same `id` counts once. If a downloaded model
        made the decision, `model` is the SHA-256 of its file, `number` that of the decision, and `copy` a text that tells copies of
        the model apart; the loop may be any, and refuses a density that is not the model's.
        """
        body = {"context": to_json(context), "action": action, "density": density, "within": within}
        body |= {"loss": loss, "reward": reward}
        body |= {} if parts is None else {"parts": parts}
        body |= {} if floor is None else {"floor": floor}
        body |= {} if densities is None else {"densities": densities}
        body |= {"model": model, "number": number, "copy": copy} if (model, number, copy) != (None,) * 3 else {}
        return (yield from self._post(_path(loop, "observations"), _with_id(_finite(body | {"id": id})), wire.Observed))

    @call
    def observe_many(self, loop: str, observations: Sequence[Mapping[str, Any]]) -> Exchange[list[wire.Observed]]:
        """Report many `observations` of a `loop`, a thousand per request; each has the arguments of `observe` by name."""
        rows = [
            _with_id(_finite(dict(each) | {"context": to_json(each.get("context"))}, f"observations[{place}]."))
            for place, each in enumerate(observations)
        ]
        stored: list[wire.Observed] = []
        for batch in _batches(rows):
            path = _path(loop, "observations", "batch")
            stored += (yield from self._post(path, {"observations": batch}, wire.Observations)).observations
        return stored

    @call
    def pause(self, loop: str) -> Exchange[wire.Status]:
        """Pause the learning of a `loop`; losses are stored and learned after `resume`."""
        return (yield from self._post(_path(loop, "pause"), None, wire.Status))

    @call
    def resume(self, loop: str) -> Exchange[wire.Status]:
        """Resume the learning of a `loop`, beginning with the losses that arrived during the pause."""
        return (yield from self._post(_path(loop, "resume"), None, wire.Status))

    @call
    def change_budget(self, loop: str, amount: float) -> Exchange[wire.Status]:
        """Change the `amount` of the budget of a `loop` from now on, also in the current period."""
        path = _path(loop, "budget")
        return (
            yield from self._request(wire.Status, method="PUT", path=path, body=_encode(_finite({"amount": amount})))
        )

    @call
    def promote(self, loop: str) -> Exchange[wire.Status]:
        """Let the apprentice of a `loop` decide. A rollout ends, and the learner makes all decisions."""
        return (yield from self._post(_path(loop, "promote"), None, wire.Status))

    @call
    def start_rollout(
        self,
        loop: str,
        *,
        baseline: Action | Path,
        least_seconds: float = 0.0,
        webhook: Mapping[str, str] | None = None,
        restart: bool = False,
        **plan: Unpack[PlanSettings],
    ) -> Exchange[Rollout]:
        """Start a rollout of a `loop`.

        `baseline` is an action, "caller", or the path of a saved policy, each step lasts for `least_seconds`, `webhook` has a
        `url` and a `secret`, and the settings of the `plan` are those of `manul.Rollout`. Other settings than before start a new
        test. A rollout that was aborted or rolled back starts again only with `restart`.
        """
        given: Any = baseline
        if isinstance(baseline, Path) or (isinstance(baseline, str) and _is_path(baseline)):
            if not Path(baseline).is_file():
                rule = "an action, 'caller' or the path of a saved policy"
                raise ParameterError(f"baseline must be {rule}, got {str(baseline)!r}, which is no file.", "baseline")
            given = {"policy": base64.b64encode(_read(Path(baseline))).decode()}
        settings = {"baseline": given, "least_seconds": least_seconds, "webhook": webhook, "restart": restart, **plan}
        path = _path(loop, "rollout")
        return (yield from self._request(Rollout, method="PUT", path=path, body=_encode(settings)))

    @call
    def rollout(self, loop: str) -> Exchange[Rollout]:
        """Return the rollout of a `loop`: traffic, evidence, moves, and what the next step needs."""
        return (yield from self._get(_path(loop, "rollout"), Rollout))

    @call
    def pause_rollout(self, loop: str) -> Exchange[Rollout]:
        """Pause the rollout of a `loop`: the learner gets no more traffic, but can still lose it."""
        return (yield from self._post(_path(loop, "rollout", "pause"), None, Rollout))

    @call
    def resume_rollout(self, loop: str) -> Exchange[Rollout]:
        """Resume the paused rollout of a `loop`."""
        return (yield from self._post(_path(loop, "rollout", "resume"), None, Rollout))

    @call
    def abort_rollout(self, loop: str) -> Exchange[Rollout]:
        """Abort the rollout of a `loop`: from now on the baseline makes all decisions."""
        return (yield from self._post(_path(loop, "rollout", "abort"), None, Rollout))

    @call
    def reset(self, loop: str) -> Exchange[wire.Status]:
        """Delete all data of a `loop` and restart it with the settings it was created with."""
        # Sent twice, it would delete what arrived after the first time.
        return (yield from self._request(wire.Status, method="POST", path=_path(loop, "reset"), repeatable=False))

    @call
    def delete(self, loop: str) -> Exchange[wire.Deleted]:
        """Delete a `loop` with all its decisions, losses and models."""
        # Sent twice, it would report that the loop does not exist, or delete one created in between.
        return (yield from self._request(wire.Deleted, method="DELETE", path=_path(loop), repeatable=False))

    @call
    def report(self, loop: str) -> Exchange[wire.Report]:
        """Return the estimates of the agent of a `loop`, and the estimated losses of the model and of alternatives."""
        return (yield from self._get(_path(loop, "report"), wire.Report))

    @call
    def log(self, loop: str, path: str | Path) -> Exchange[Path]:
        """Write the log of a `loop` to a Parquet file at a `path` that `manul.Log.read` reads."""
        return (yield from self._download(_path(loop, "log"), Path(path)))

    @call
    def model(self, loop: str, path: str | Path) -> Exchange[Path]:
        """Write the model of a `loop` to a `.manul` file at a `path` that `manul.load` reads."""
        return (yield from self._download(_path(loop, "model"), Path(path)))

    @call
    def replace(self, loop: str, path: str | Path) -> Exchange[wire.Status]:
        """Replace the model of a `loop` by that of the `.manul` file at a `path`."""
        body = _read(Path(path))
        # Sent twice, it would undo what was learned in between.
        return (
            yield from self._request(wire.Status, method="PUT", path=_path(loop, "model"), body=body, repeatable=False)
        )

    def _get(self, path: str, kind: type[T]) -> Exchange[T]:
        return (yield from self._request(kind, method="GET", path=path))

    def _post(self, path: str, body: object, kind: type[T]) -> Exchange[T]:
        return (yield from self._request(kind, method="POST", path=path, body=None if body is None else _encode(body)))

    def _request(self, kind: type[T], **request: Any) -> Exchange[T]:
        return decode((yield from send(Request(**request), self._retries)), kind)

    def _download(self, path: str, target: Path) -> Exchange[Path]:
        """The file gets its name once it is complete."""
        part = target.with_name(target.name + ".part")
        try:
            yield from send(Request(method="GET", path=path, file=part), self._retries)
            return part.replace(target)
        finally:
            part.unlink(missing_ok=True)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise FileError(f"cannot read {path}: {error.strerror}") from None


def _path(*parts: str) -> str:
    return "/".join(["/v1/loops", *(quote(part, safe="~:@=+") for part in parts)])


def _is_path(baseline: str) -> bool:
    """Whether a text is the path of a saved policy, no option or "caller"."""
    return baseline != "caller" and (baseline.endswith(".manul") or Path(baseline).is_file())


def _described(actions: Any) -> Any:
    """What may be chosen, as JSON values."""
    if isinstance(actions, ActionSpace):
        return _described(actions.actions)
    if isinstance(actions, Mapping):
        return {name: _described(knob) for name, knob in actions.items()}
    return actions.describe() if isinstance(actions, Knob) else actions


def _outcome_settings(outcome: Outcome) -> dict[str, Any]:
    """The settings of a loop with an outcome; its name is not one of them."""
    settings: dict[str, Any] = {outcome.keywords: outcome.range}
    if outcome.parts:
        settings |= {"formula": outcome.formula, "parts": dict(outcome.parts), "hints": dict(outcome.hints)}
    if outcome.wait is not None:
        default = outcome.wait.default
        name = "default_parts" if isinstance(default, Mapping) else f"default_{outcome.keyword}"
        settings |= {"wait": outcome.wait.seconds, "combine": outcome.wait.combine, name: default}
    return settings


def _id_of(decision: DecisionOrId) -> str:
    return decision if isinstance(decision, str) else decision.id


def _finite(body: dict[str, Any], where: str = "") -> dict[str, Any]:
    """A body whose numbers are finite: in JSON, others would be null, as if they had not been given."""
    named = {name: body.get(name) for name in ("density", "floor", "loss", "reward", "amount")}
    densities = body.get("densities")
    if isinstance(densities, Mapping):
        named |= {f"densities.{knob}": density for knob, density in densities.items()}
    for name, value in named.items():
        if isinstance(value, float | np.floating) and not math.isfinite(value):
            raise InputError(f"{name} must be a finite number, got {value:g}.", where + name)
    return body


def _with_id(observation: dict[str, Any]) -> dict[str, Any]:
    """An observation that is known by an id, or by its number in a copy of a model."""
    known = observation.get("model") is not None and observation.get("number") is not None
    return observation | {"id": observation.get("id") or (None if known else _new_id())}


def _new_id() -> str:
    return uuid.uuid4().hex


def _batches(values: Sequence[T]) -> Iterator[Sequence[T]]:
    for first in range(0, len(values), BATCH):
        yield values[first : first + BATCH]


def _to_builtin(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    raise ParameterError(
        f"context must contain numbers, texts, dates and lists of these, got {type(value).__name__}.", "context"
    )


_encode = msgspec.json.Encoder(enc_hook=_to_builtin).encode
