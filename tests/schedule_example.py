"""A kind of schedule in one file outside the package: importing it is all that agents, files, the service and commands need."""

import dataclasses

import manul


@manul.register.schedule("steps")
@dataclasses.dataclass(frozen=True)
class Steps(manul.schedules.Schedule):
    """Epsilon is `levels[i]` until `until[i]` rounds are learned, and the last level from then on."""

    levels: tuple[float, ...] = (0.2, 0.05, 0.01)
    until: tuple[float, ...] = (100.0, 300.0)

    def points(self):
        ends = [0.0, *(rounds for rounds in self.until for _ in "12")]
        return list(zip(ends, [level for level in self.levels for _ in "12"][: len(ends)], strict=True))
