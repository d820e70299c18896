"""Training of all candidates in the threads of this machine, in one pass over the log."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from manul.logs.sample import Sample
from manul.offpolicy.optimization.checkpoint import Checkpoint
from manul.offpolicy.optimization.engines import TrainingResult
from manul.offpolicy.optimization.grid import Candidate
from manul.offpolicy.optimization.replay import LogSummary, Replay, pieces
from manul.utils.validation import check_has_rows


def train(
    candidates: Sequence[Candidate],
    sample: Sample,
    *,
    draw: int | None,
    clip: float | None,
    threads: int | None,
    resume: str | Path | None,
    advance: Callable[[int], object],
) -> TrainingResult:
    """Train every candidate; with `resume`, continue the run in that folder."""
    replay, seen = Replay(candidates, draw=draw, threads=threads, clip=clip), LogSummary()
    checkpoint = None if resume is None else Checkpoint(resume, replay, {"draw": draw, "clip": clip})
    stream = pieces(sample.batches)
    for piece in stream if checkpoint is None else checkpoint.skip(stream, seen):
        replay.learn(piece)
        seen.add(piece)
        advance(len(piece))
        if checkpoint is not None:
            checkpoint.keep(seen)
    check_has_rows(seen.rows)
    if checkpoint is not None:
        checkpoint.keep(seen, now=True)
    return TrainingResult(seen, replay.sums, replay.clipped, lambda index: replay.snapshots[index])
