"""Checks whether a log is suitable for off-policy evaluation.

The main test is an identity: for any logging policy, 1 / (density * length of the range) averages 1 over all rows, and
within any part of the range it averages that part's share. Both sides are tested with bets (`intervals.Wealth`), which are
valid for any number of rows and for policies that learn while they log.
"""

from __future__ import annotations

from dataclasses import dataclass

from manul.actions.decision import Within
from manul.logs.density_models import resolution
from manul.logs.log import Declares
from manul.logs.sample import Logs, Sample
from manul.offpolicy.diagnosis.bookkeeping import Bookkeeping
from manul.offpolicy.diagnosis.explored_cost import ExploredCost
from manul.offpolicy.diagnosis.filled_densities import find_filled_densities
from manul.offpolicy.diagnosis.filled_losses import FilledEnd
from manul.offpolicy.diagnosis.latest_rows import LatestRows, LatestRowsKeeper
from manul.offpolicy.diagnosis.outcome_atoms import find_atoms
from manul.offpolicy.diagnosis.pairing import find_wrong_pairs
from manul.offpolicy.diagnosis.policy_weights import PolicyWeights
from manul.offpolicy.diagnosis.predictable_actions import find_predictable_actions
from manul.offpolicy.diagnosis.rounded_actions import find_rounded_actions
from manul.offpolicy.diagnosis.support import FAILURE, Coverage
from manul.offpolicy.diagnosis.symptoms import Drift, Duplicates, Outside, Symptom
from manul.offpolicy.evaluation.policy_densities import PolicyOnLog
from manul.offpolicy.evaluation.policy_objections import PolicyObjections
from manul.outcomes import AnyRange, Outcome
from manul.policies.policy import Policy
from manul.utils.validation import check_has_rows

SEVERITIES = ("error", "warning", "note")


@dataclass(frozen=True)
class Finding:
    """A problem with a log; a log with an `error` must not be used.

    >>> print(Finding("warning", "duplicated rows", "3 rows occur twice."))
    warning: duplicated rows. 3 rows occur twice.
    """

    severity: str
    title: str
    sentence: str

    def __str__(self) -> str:
        return f"{self.severity}: {self.title}. {self.sentence}"


def doctor(
    log: Logs,
    policy: Policy | None = None,
    *,
    actions: Within | None = None,
    losses: AnyRange | None = None,
    rewards: AnyRange | None = None,
    outcome: Outcome | None = None,
    like: Declares | None = None,
    progress: bool = False,
) -> list[Finding]:
    """List the problems of a `log` for off-policy evaluation, most severe first, in one pass and constant memory.

    With a `policy`, its importance weights are tested: their mean, their effective sample size and the largest. Without
    one, a note says how many rows explored if they are few, as in logs of agents whose epsilon fades. Logs with several
    knobs are tested knob by knob. Whether the values of a row belong together is tested in the last 4,096 rows.
    `actions` and `losses` are the ranges of the log, if it does not declare
    them, or `rewards` that of rewards, if the log has them; `like` is an agent or another log that has the ranges. An
    `outcome` with a formula computes the losses from the parts of the log. `progress` shows a bar on standard error.

    >>> import manul
    >>> log = manul.simulate(manul.Cats(leaves=16, bandwidth=1/8), manul.worlds.linear(rounds=5000)).log
    >>> doctor(log)
    []
    """
    sample = Sample.of(log, actions=actions, losses=losses, rewards=rewards, outcome=outcome, like=like)
    outside, drift, duplicates = Outside(sample.span, sample.scale), Drift(), Duplicates()
    book, end, latest, explored = Bookkeeping(), FilledEnd(), LatestRowsKeeper(), ExploredCost()
    doubts, covered = PolicyObjections(policy), Coverage(sample.space)
    weights = None if policy is None else PolicyWeights(PolicyOnLog(policy))
    for rows in sample.pieces(progress=progress, seen=book.add):
        good = covered.inside(outside.add(rows))
        covered.add(good)
        latest.add(good)
        explored.add(good)
        if weights is not None:
            weights.add(good)
        drift.add(rows)
        duplicates.add(rows)
        end.add(rows)
        doubts.add(rows)
    check_has_rows(outside.rows)
    symptoms = [*covered.findings(), *outside.findings(), *covered.leaks(), *book.findings(), *end.findings()]
    symptoms += [*duplicates.findings(continuous=covered.continuous), *drift.findings(FAILURE)]
    symptoms += covered.size() if weights is None else weights.findings(FAILURE)
    # Without a policy, the log can still be used for functions and constants.
    symptoms += [
        ("warning" if policy is None else each.severity, each.title, each.sentence) for each in doubts.objections()
    ]
    last = latest.rows(continuous=covered.continuous and not covered.several)
    # Declared steps and options are not rounded.
    step = resolution(last.positions[:, 0]) if covered.numeric and not covered.several else 0.0
    symptoms += _row_symptoms(last, step, explored, sample.scale, {title for _, title, _ in symptoms})
    if last.estimated:
        symptoms.append(("note", "estimated densities", _ESTIMATED))
    return sorted((Finding(*symptom) for symptom in symptoms), key=lambda finding: SEVERITIES.index(finding.severity))


# The same densities or column would be reported twice.
_DENSITIES = {"wrong densities", "missing exploration", "leaked action", "column set after the decision"}


def _row_symptoms(
    rows: LatestRows, step: float, explored: ExploredCost, losses: Within, known: set[str]
) -> list[Symptom]:
    """What whole rows show: which of their values do not belong together."""
    pairs = find_wrong_pairs(rows)
    symptoms = [*find_rounded_actions(rows, step), *pairs, *find_atoms(rows, losses)]
    if not known & _DENSITIES:
        symptoms += find_predictable_actions(rows, step) or find_filled_densities(rows)
        symptoms += [] if any(severity == "error" for severity, _, _ in pairs) else explored.findings(rows)
    return symptoms


_ESTIMATED = "The densities were estimated, not logged. Estimates are only as good as the density model, and intervals ignore its error."
