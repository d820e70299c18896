"""A run with few cells: every player and experiment is there, and it takes a second or two."""

import pytest

from manul.offpolicy import Grid
from manul.paper.experiments import methods, offline, timing


@pytest.fixture(scope="module")
def few_cells():
    kept = {(4, 1 / 4), (16, 1 / 8), (512, 1 / 32)}

    def online(every=methods.online):
        return [
            player
            for player in every()
            if (player.leaves, player.bandwidth) in kept
            or (player.bandwidth is None and (player.leaves or 0) in (0, 2, 4, 256))
        ]

    def timed(every=timing.cells):
        return [(against, player) for against, player in every() if player.leaves <= 32 or player.leaves >= 4096][::2]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(methods, "online", online)
        patch.setattr(timing, "cells", timed)
        patch.setattr(timing, "PASSES", 1)
        patch.setattr(timing, "SECONDS", 0.01)
        patch.setattr(offline, "GRID", Grid(bandwidths=[1 / 4, 1 / 16], leaves=[16]))
        yield
