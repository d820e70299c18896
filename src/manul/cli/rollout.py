"""`manul rollout`."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import fields
from datetime import UTC, datetime
from operator import methodcaller
from typing import TYPE_CHECKING, Any

import click

from manul.cli._options import INTEGER, NUMBER, List, Number
from manul.cli._wording import echo

if TYPE_CHECKING:
    from manul.service.rollout_schema import Rollout, RolloutMove

RETRIES = 2  # a person waits for the answer
MOVES = 20  # the newest ones, which are printed


class Baseline(Number):
    """An action (of several knobs a JSON object, an option a JSON text), `caller`, or the file of a saved policy."""

    name = "baseline"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        text = str(value)
        if text.startswith(("{", '"')):
            try:
                return json.loads(text)
            except ValueError as error:
                self.fail(
                    f'--baseline must be JSON such as {{"price": 20}} or "bold", got {text!r:.60}: {error}.', param, ctx
                )
        return text if text == "caller" or text.endswith(".manul") else super().convert(value, param, ctx)


class GuardText(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    """A rule about a part, such as `returned <= 1.02` or, with a range, `latency <= 1.1 in 0,5`."""

    name = "rule"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        form = r"\s*(.+?)\s*(<=|>=)\s*([^\s]+?)(?:\s+in\s+([^,\s]+)\s*,\s*([^,\s]+))?\s*"
        found = re.fullmatch(form, value)
        try:
            assert found is not None
            name, relation, ratio, low, high = found.groups()
            ends = [] if low is None else [[float(low), float(high)]]
            return name, [relation, float(ratio), *ends]
        except (AssertionError, ValueError):
            form = "'returned <= 1.02' or 'latency <= 1.1 in 0,5'"
            self.fail(f"--guard must be a rule such as {form}, got {value!r:.60}.", param, ctx)


def takes_loop(command: Callable[..., None]) -> Callable[..., None]:
    """Add the loop, the address of the service, and the form of the output."""
    decorators = (
        click.argument("loop"),
        click.option("--url", default="http://127.0.0.1:8000", envvar="MANUL_URL", help="Address of the service; also MANUL_URL."),
        click.option("--token", envvar="MANUL_TOKEN", help="Token, if the service has tokens; also MANUL_TOKEN."),
        click.option("--json", "as_json", is_flag=True, help="Print the rollout as JSON."),
    )  # fmt: skip
    for decorate in reversed(decorators):
        command = decorate(command)
    return command


class PlanCommand(click.Command):
    """A command with an option for each setting of `RolloutPlan`, which is imported when the command is used."""

    _complete = False

    @property
    def params(self) -> list[click.Parameter]:
        if not self._complete:
            self._complete = True
            self._params += plan_options()
        return self._params

    @params.setter
    def params(self, given: list[click.Parameter]) -> None:
        self._params = given


def plan_options() -> list[click.Option]:
    from manul.agents.rollout.rollout_plan import RolloutPlan

    types = {"steps": List(NUMBER), "outcome_range": List(NUMBER), "least_decisions": INTEGER, "patience": INTEGER}
    types["guard"] = GuardText()
    options = []
    for each in fields(RolloutPlan):
        default: Any = each.default
        default = ",".join(f"{step:g}" for step in default) if each.name == "steps" else default
        given: Any = {"type": types.get(each.name, NUMBER), "default": default, "help": each.metadata["summary"]}
        if each.name == "guard":
            given |= {"multiple": True, "callback": lambda _context, _option, rules: dict(rules) or None}
        options.append(click.Option([f"--{each.name.replace('_', '-')}"], **given))
    return options


@click.group(epilog="\b\nExample:\n  manul rollout status heating")
def rollout() -> None:
    """Let the learner of a loop take over from a baseline by evidence.

    The commands send one request to `manul serve` and print the rollout: its state, its evidence, and its moves.
    """


@rollout.command(
    cls=PlanCommand, epilog="\b\nExample:\n  manul rollout start heating --baseline 45 --steps 0.05,0.25,1"
)
@takes_loop
@click.option(
    "--baseline",
    type=Baseline(),
    required=True,
    help="Action, such as 45 or '{\"price\": 20}', `caller`, or the .manul file of a saved policy.",
)
@click.option("--least-seconds", type=NUMBER, default=0.0, help="Least time per step.")
@click.option("--restart", is_flag=True, help="Start again if the rollout was aborted or rolled back.")
@click.option("--webhook", metavar="URL", help="Where to report moves.")
@click.option(
    "--webhook-secret",
    metavar="TEXT",
    envvar="MANUL_WEBHOOK_SECRET",
    help="Secret that signs the reports; also MANUL_WEBHOOK_SECRET.",
)
def start(loop: str, *, webhook: str | None, webhook_secret: str | None, **options: Any) -> None:
    """Start a rollout in LOOP. If one is running with other settings, a new test begins. One that has ended stays ended,
    unless --restart is given."""
    if webhook is not None and webhook_secret is None:
        raise click.UsageError("--webhook needs --webhook-secret, or MANUL_WEBHOOK_SECRET")
    receiver = None if webhook is None else {"url": webhook, "secret": webhook_secret}
    connection = {name: options.pop(name) for name in ("url", "token", "as_json")}
    _call("start_rollout", loop, **connection, webhook=receiver, **options)


@rollout.command(epilog="\b\nExample:\n  manul rollout status heating")
@takes_loop
def status(loop: str, **connection: Any) -> None:
    """Show the rollout of LOOP."""
    _call("rollout", loop, **connection)


@rollout.command(epilog="\b\nExample:\n  manul rollout pause heating")
@takes_loop
def pause(loop: str, **connection: Any) -> None:
    """Pause the rollout of LOOP: the learner can lose traffic, but does not get more."""
    _call("pause_rollout", loop, **connection)


@rollout.command(epilog="\b\nExample:\n  manul rollout resume heating")
@takes_loop
def resume(loop: str, **connection: Any) -> None:
    """Resume the rollout of LOOP."""
    _call("resume_rollout", loop, **connection)


@rollout.command(epilog="\b\nExample:\n  manul rollout abort heating")
@takes_loop
def abort(loop: str, **connection: Any) -> None:
    """Abort the rollout of LOOP: from now on the baseline makes all decisions."""
    _call("abort_rollout", loop, **connection)


def _call(name: str, loop: str, *, url: str, token: str | None, as_json: bool, **settings: Any) -> None:
    from manul.service.client import Client

    with Client(url, token, retries=RETRIES) as client:
        result = methodcaller(name, loop, **settings)(client)
    echo(rollout_json(result) if as_json else rollout_text(result))


def rollout_json(rollout: Rollout) -> str:
    import msgspec

    return msgspec.json.format(msgspec.json.encode(rollout), indent=2).decode()


def rollout_text(rollout: Rollout) -> str:
    """The state, the evidence and the moves of a rollout."""
    name, sign = ("reward", "the least") if rollout.rewards else ("loss", "the most")
    lines = [
        f"{rollout.loop}: {rollout.status}",
        rollout.sentence,
        "",
        f"traffic     learner {_percent(rollout.traffic)}, baseline {_percent(1 - rollout.traffic)}",
        f"decisions   learner {rollout.learner_decisions:,}, baseline {rollout.baseline_decisions:,}; "
        f"{rollout.in_flight:,} not judged yet",
        *_left_out(rollout),
        f"difference  {_bounds(rollout.rewards, rollout.excess)} (learner's {name} minus {sign} that is tolerated)",
        f"budget      {max(rollout.spent, 0.0):.4g} of {rollout.budget:.4g} spent",
        *(f"guard       {guard.name}: {guard.state} ({guard.rule})" for guard in rollout.guards),
    ]
    if rollout.not_before is not None:
        lines.append(f"next step   not before {_time(rollout.not_before)}")
    if rollout.webhook is not None:
        unsent = "all moves received" if not rollout.unsent else f"moves not received yet: {rollout.unsent:,}"
        lines.append(f"webhook     {rollout.webhook}, {unsent}")
    return "\n".join([*lines, "", *_table(rollout)])


def _left_out(rollout: Rollout) -> list[str]:
    """The decisions without losses, if there are any."""
    learner, baseline = rollout.learner_left_out, rollout.baseline_left_out
    return [f"left out    learner {learner:,}, baseline {baseline:,}"] if learner or baseline else []


def _table(rollout: Rollout) -> list[str]:
    rows = [["time", "step", "why", "by", "judged", "difference"]]
    rows += [_row(rollout, move) for move in rollout.moves[-MOVES:]]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _row(rollout: Rollout, move: RolloutMove) -> list[str]:
    known = move.low is not None and move.high is not None
    rewards = rollout.rewards and move.guard is None
    bounds = _bounds(rewards, (move.low, move.high)) if known else ""  # type: ignore[arg-type]
    reason = move.reason if move.guard is None else f"{move.reason} in {move.guard}"
    return [_time(move.time), str(move.target), reason, move.by, f"{move.judged:,}", bounds]


def _bounds(rewards: bool, excess: Sequence[float] | None) -> str:  # noqa: FBT001 - of one caller
    if excess is None:
        return "unknown"
    low, high = (0 - excess[1], 0 - excess[0]) if rewards else excess
    return f"{low:.4g} to {high:.4g}"


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).astimezone().isoformat(" ", "seconds")
