"""A rollout as text, for the command line."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import msgspec

from manul.service.rollout_schema import Rollout, RolloutMove

# The newest moves that are printed.
MOVES = 20


def rollout_json(rollout: Rollout) -> str:
    """The rollout as JSON."""
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
        f"difference  {_bounds(rollout, rollout.excess)} (learner's {name} minus {sign} that is tolerated)",
        f"budget      {max(rollout.spent, 0.0):.4g} of {rollout.budget:.4g} spent",
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
    bounds = _bounds(rollout, (move.low, move.high)) if known else ""  # type: ignore[arg-type]
    return [_time(move.time), str(move.target), move.reason, move.by, f"{move.judged:,}", bounds]


def _bounds(rollout: Rollout, excess: Sequence[float] | None) -> str:
    if excess is None:
        return "unknown"
    low, high = (0 - excess[1], 0 - excess[0]) if rollout.rewards else excess
    return f"{low:.4g} to {high:.4g}"


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).astimezone().isoformat(" ", "seconds")
