"""docs/operate.md and the alerts say what the code does."""

import json
import math
import re

import pytest
import yaml

from manul.cli.serve import serve
from manul.service.configuration import Limits
from manul.service.http.metrics import SECONDS
from manul.service.http.route_table import OPERATIONS
from tests.markdown import ROOT
from tests.service.conftest import Service, run

PAGE = (ROOT / "docs/operate.md").read_text()
RULES = yaml.safe_load((ROOT / "deploy/alerts.yaml").read_text())["groups"][0]["rules"]
DASHBOARD = json.loads((ROOT / "deploy/grafana.json").read_text())
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
EXPRESSIONS = [target["expr"] for panel in PANELS for target in panel["targets"]]
UNITS = {"MiB": 2**20, "KiB": 2**10, "": 1}
DEFAULTS = {
    name: value for name, value in zip(Limits.__struct_fields__, Limits.__struct_defaults__, strict=True) if value
}


@pytest.mark.parametrize("name", DEFAULTS)
def test_the_table_of_limits_has_every_limit_with_its_option_and_default(name):
    (row,) = re.findall(rf"^\| `(--[\w-]+)` \| `{name}` \| ([\d,]+) ?(\w*) \| .+ \| .+ \|$", PAGE, re.MULTILINE)
    option, number, unit = row
    assert [each.name for each in serve.params if option in each.opts] == [name]
    assert int(number.replace(",", "")) * UNITS[unit] == DEFAULTS[name]


ADS = {
    "actions": [0, 40],
    "rewards": "auto",
    "formula": "(9 - action) * won",
    "parts": {"won": "yes/no"},
    "spend_at_most": ["won * action", 5000, 4],
    "keep": ["won", ">=", 0.5],
}


@run
async def test_alerts_the_dashboard_and_the_table_of_metrics_use_metrics_that_exist(tmp_path):
    service = Service(tmp_path / "decisions.db")
    async with service.running():
        await service.post("", 201, name="heat", actions=[20, 70], parts={"returned": "yes/no"})
        guard = {"returned": ["<=", 1.02]}
        await service.post("", 201, name="ads", **ADS)
        for number in range(2):
            decision = await service.post("/ads/decisions", context=[number])
            await service.post(f"/ads/decisions/{decision['id']}/loss", parts={"won": True})
        await service.learned("ads", 2)
        await service.client.put("/v1/loops/heat/rollout", json={"baseline": 40, "guard": guard})
        text = (await service.client.get("/metrics")).text
    known = set(re.findall(r"^# TYPE (\w+)", text, re.MULTILINE))
    used = {name.removesuffix("_bucket") for rule in RULES for name in re.findall(r"manul_\w+", rule["expr"])}
    assert used <= known
    asked = "\n".join(
        EXPRESSIONS + [each["definition"] for each in DASHBOARD["templating"]["list"] if "definition" in each]
    )
    assert {name.removesuffix("_bucket") for name in re.findall(r"manul_\w+", asked)} <= known
    labels = {"job", "instance"} | set(re.findall(r'(\w+)="', text)) | {"token"}  # the first two are Prometheus's own
    assert set(re.findall(r'(\w+)=~?"', asked)) <= labels
    assert {name for names in re.findall(r"by \(([\w, ]+)\)", asked) for name in names.split(", ")} <= labels
    table = PAGE.partition("| metric |")[2].partition("\n\n")[0]
    assert set(re.findall(r"manul_\w+", table)) <= known <= set(re.findall(r"manul_\w+", PAGE))


def test_the_dashboard_has_panels_that_do_not_overlap_and_say_what_they_show():
    taken = [
        (at["x"] + x, at["y"] + y)
        for at in (panel["gridPos"] for panel in DASHBOARD["panels"])
        for x in range(at["w"])
        for y in range(at["h"])
    ]
    assert len(taken) == len(set(taken))
    assert max(x for x, _ in taken) == 23
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])
    assert all(panel["description"].endswith(".") for panel in PANELS)
    variables = {each["name"] for each in DASHBOARD["templating"]["list"]} | {"__rate_interval"}
    assert set(re.findall(r"\$\{?(\w+)", json.dumps(PANELS))) <= variables


def test_alerts_on_latency_ask_for_a_bucket_and_a_route_that_exist():
    (slow,) = (rule["expr"] for rule in RULES if "histogram_quantile" in rule["expr"])
    assert float(slow.rpartition("> ")[2]) in SECONDS
    assert re.search(r'route="(\w+)"', slow)[1] in {each.name for each in OPERATIONS}


SECONDS_PER = {"m": 60, "h": 3600, "d": 86400}
OVER_TIME = re.compile(r"(rate|increase|delta|resets|min_over_time)\((\w+)\[(\d+)(\w)\](?: offset (\d+)(\w))?\)")


def fires(alert, **metrics):
    """Whether an alert fires for a loop with metrics as functions of the time, now; those that are left out do not exist."""
    (expr,) = (rule["expr"] for rule in RULES if rule["alert"] == alert)

    def over_time(call):
        kind, name, number, unit, later, unit_later = call.groups()
        span, end = int(number) * SECONDS_PER[unit], NOW - int(later or 0) * SECONDS_PER.get(unit_later, 0)
        change = metrics[name](end) - metrics[name](end - span)
        lowest = min(metrics[name](end), metrics[name](end - span))
        return repr({"rate": change / span, "resets": float(change < 0), "min_over_time": lowest}.get(kind, change))

    expr = OVER_TIME.sub(over_time, expr)
    expr = re.sub(r"manul_\w+", lambda name: repr(metrics[name[0]](NOW) if name[0] in metrics else -1), expr)
    return eval(" ".join(expr.replace("unless", "and not").split()), {"sqrt": math.sqrt})


DAY = SECONDS_PER["d"]
NOW = 30 * DAY
PER_SECOND = 1.0


def outcomes(time):
    return PER_SECOND * time


def shares(usual, today):
    """Outcomes that are defaults, a share of all, which is another one in the last day."""
    return lambda time: PER_SECOND * (usual * min(time, NOW - DAY) + today * max(time - NOW + DAY, 0))


@pytest.mark.parametrize(("usual", "today", "alarm"), [(0.98, 0.98, False), (0.98, 0.995, True), (0.5, 0.6, False)])
def test_defaults_alarm_if_there_are_more_than_before_not_if_most_visitors_do_not_buy(usual, today, alarm):
    metrics = {"manul_defaulted_total": shares(usual, today), "manul_outcomes_total": outcomes}
    assert fires("ManulDefaults", **metrics, manul_decisions_total=outcomes) == alarm
    assert not fires("ManulAllDefaults", **metrics)


def test_a_loop_for_which_no_loss_is_ever_reported_alarms():
    assert fires("ManulAllDefaults", manul_defaulted_total=outcomes, manul_outcomes_total=outcomes)


@pytest.mark.parametrize(("today", "alarm"), [(-6.0, False), (-5.8, False), (-4.0, True), (-9.0, False)])
def test_a_falling_reward_alarms(today, alarm):
    mean = {"manul_loss_sum": shares(-6.0, today), "manul_outcomes_total": outcomes}
    assert fires("ManulWorse", **mean, manul_loss_deviation=lambda _: 12.0) == alarm


def test_a_reset_is_no_fall():
    def since_the_reset(time):
        return outcomes(time if time < NOW - DAY / 2 else time - NOW + DAY / 2)

    mean = {"manul_loss_sum": lambda time: -6 * since_the_reset(time), "manul_outcomes_total": since_the_reset}
    assert not fires("ManulWorse", **mean, manul_loss_deviation=lambda _: 12.0)


@pytest.mark.parametrize("wait", [None, 14 * DAY])
def test_a_loop_that_decides_and_learns_nothing_alarms_unless_its_first_wait_runs(wait):
    metrics = {"manul_decisions_total": outcomes, "manul_learned_total": lambda _: 0}
    waits = {} if wait is None else {"manul_wait_seconds": lambda _: wait}
    assert fires("ManulNoLosses", **metrics, **waits) == (wait is None)


@pytest.mark.parametrize("wait", [None, DAY])
def test_a_rollout_that_is_held_up_alarms_unless_its_decisions_wait(wait):
    waits = {} if wait is None else {"manul_wait_seconds": lambda _: wait}
    assert fires("ManulRolloutHeldUp", manul_rollout_in_flight=lambda _: 5000, **waits) == (wait is None)


@pytest.mark.parametrize(("late", "alarm"), [(0.0005, False), (0.005, True)])
def test_late_losses_are_compared_with_those_in_time_not_with_all_decisions(late, alarm):
    metrics = {"manul_defaulted_total": shares(0.98, 0.98), "manul_outcomes_total": outcomes}
    assert fires("ManulLossesLate", **metrics, manul_late_total=lambda time: late * outcomes(time)) == alarm


def test_each_service_has_a_leader_of_its_own():
    (expr,) = (rule["expr"] for rule in RULES if rule["alert"] == "ManulNoLeader")
    label = re.fullmatch(r"sum by \((\w+)\) \(manul_leader\) != 1", expr)[1]
    shop, ads = ({"job": "shop"}, [1, 0]), ({"job": "ads"}, [1])  # two replicas on one store, and another service
    assert {labels[label]: sum(leaders) for labels, leaders in (shop, ads)} == {"shop": 1, "ads": 1}


def test_every_alert_says_what_is_wrong():
    assert len({rule["alert"] for rule in RULES}) == len(RULES)
    assert all(rule["annotations"]["summary"].endswith(".") for rule in RULES)
