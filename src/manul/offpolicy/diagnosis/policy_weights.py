"""The importance weights of a policy on a log: their mean, which must be 1, the effective sample size and the largest."""

from __future__ import annotations

import numpy as np

from manul.logs.rows import Rows
from manul.offpolicy.diagnosis.support import SMALL, TINY, EffectiveSize, MeanTest
from manul.offpolicy.diagnosis.symptoms import Symptom
from manul.offpolicy.evaluation.policy_densities import PolicyOnLog

HEAVY = 0.05  # of the total weight, in one row


class PolicyWeights:
    def __init__(self, policy: PolicyOnLog) -> None:
        self.policy, self.test, self.sample = policy, MeanTest(), EffectiveSize()
        self.largest, self.heaviest = 0.0, 0
        self.policy_density, self.logged_density = 0.0, np.inf

    def add(self, rows: Rows) -> None:
        """Add a piece of rows with valid actions and densities."""
        if not len(rows):
            return
        densities = self.policy.densities(rows)
        weights = densities / rows.densities
        self.test.add(weights)
        self.sample.add(weights)
        if weights.max() > self.largest:
            self.largest, self.heaviest = float(weights.max()), rows.first + int(np.argmax(weights))
        known = rows.densities if rows.floors is None else np.fmin(rows.floors, rows.densities)
        known = known[known > 0]
        self.policy_density = max(self.policy_density, float(densities.max()))
        self.logged_density = min(self.logged_density, float(known.min()))

    def findings(self, failure: float) -> list[Symptom]:
        """A note with the weights, and what is wrong with them."""
        size, mean, rows = self.sample.size, self.test.mean, self.sample.rows
        weights = (
            f"mean weight {mean:.3g}, largest {self.largest:.3g}, effective sample size {size:,.0f} of {rows:,} rows"
        )
        if not self.sample.total:
            text = "This policy has density 0 at every logged action. Check its units, or log with an epsilon above 0."
            return [("error", "no support", text)]
        symptoms: list[Symptom] = [("note", "weights of the policy", f"This policy has {weights}.")]
        low, high = self.test.ends(max(self.policy_density / self.logged_density, self.largest), failure / 2)
        if low > 1:
            text = f"The weights of this policy must average 1, but average {mean:.3g}, more than chance explains. "
            advice = "The logged densities are too small where it plays; log the density of the whole mixture."
            symptoms.append(("error", "wrong weights", text + advice))
        elif high < 1:
            text = f"The weights of this policy average {mean:.2g}, at most {high:.2g}, instead of 1: the log lacks what it plays. "
            symptoms.append(
                ("error", "no support", text + "Log with a larger epsilon, or narrow the range of the policy.")
            )
        return symptoms + self._sample_findings(size, rows)

    def _sample_findings(self, size: float, rows: int) -> list[Symptom]:
        if size < SMALL:
            text = f"The effective sample size for this policy is {size:,.0f} of {rows:,} rows, and at least {SMALL} are needed. "
            advice = "Log more rows, or use a larger epsilon."
            return [("error" if size < TINY else "warning", "small effective sample", text + advice)]
        share = self.largest / self.sample.total
        if share > HEAVY:
            text = (
                f"Row {self.heaviest} has {100 * share:.0f} % of the weight of all rows (weight {self.largest:.3g}). "
            )
            return [("warning", "one heavy row", text + "Check its density, or use a policy closer to the logged one.")]
        return []
