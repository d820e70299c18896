"""Objections to evaluating a policy on a log: it was trained on these rows, or decides on other contexts than these."""

from __future__ import annotations

from manul.logs.row_hashes import known_rows
from manul.logs.rows import Rows
from manul.offpolicy.converted_contexts import TITLE, converted_sentence
from manul.offpolicy.estimate import Objection
from manul.offpolicy.smoothed import Smoothed, SmoothedKnobs, owner_of
from manul.utils.model_files import trained_on

MOST = 0.5  # of the rows: the estimate is mostly about what the policy knows by heart
SOME = 0.05  # of the rows: fewer hardly change an estimate, and are within the error of the sketch


class PolicyObjections:
    """Collects them piece by piece."""

    def __init__(self, policy: object) -> None:
        inside = owner_of(policy) or policy
        self._is_function = isinstance(inside, Smoothed | SmoothedKnobs)
        self._sketch = trained_on(inside)
        self._converted, self._asked, self._known = dict[str, str](), 0, 0

    def add(self, rows: Rows) -> None:
        if not self._is_function:
            self._converted |= rows.converted
        if self._sketch is not None:
            known = known_rows(self._sketch, rows)
            self._asked, self._known = self._asked + len(known), self._known + int(known.sum())

    @property
    def trained_share(self) -> float:
        """The share of the rows that the policy was trained on, less those that only look like such a row."""
        if self._sketch is None or not self._asked or self._sketch.repeated >= MOST:
            return 0.0
        return max(self._known / self._asked - self._sketch.repeated, 0.0) / (1.0 - self._sketch.repeated)

    def objections(self) -> list[Objection]:
        every, share = [], self.trained_share
        if share > SOME:
            sentence = (
                f"The policy was trained on about {100 * share:.0f} % of these rows, so the estimate is too good. Evaluate it "
                "on rows that it was not trained on, for example the second part of log.split(0.8), and train it on the first."
            )
            every.append(Objection("error" if share > MOST else "warning", "trained on these rows", sentence))
        converted = converted_sentence(self._converted)
        if converted is not None:
            every.append(Objection("error", TITLE, converted))
        return every
