"""docs/operate.md and the alerts say what the code does."""

import re

import pytest
import yaml

from manul.cli.serve import serve
from manul.service.configuration import Limits
from manul.service.http.request_metrics import SECONDS
from manul.service.http.route_table import OPERATIONS
from tests.markdown import ROOT
from tests.service.conftest import Service, run

PAGE = (ROOT / "docs/operate.md").read_text()
RULES = yaml.safe_load((ROOT / "deploy/alerts.yaml").read_text())["groups"][0]["rules"]
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


@run
async def test_alerts_and_the_table_of_metrics_use_metrics_that_exist(tmp_path):
    service = Service(tmp_path / "decisions.db")
    async with service.running():
        await service.post("", 201, name="heat", actions=[20, 70])
        await service.client.put("/v1/loops/heat/rollout", json={"baseline": 40})
        text = (await service.client.get("/metrics")).text
    known = set(re.findall(r"^# TYPE (\w+)", text, re.MULTILINE))
    used = {name.removesuffix("_bucket") for rule in RULES for name in re.findall(r"manul_\w+", rule["expr"])}
    assert used <= known
    table = PAGE.partition("| metric |")[2].partition("\n\n")[0]
    assert set(re.findall(r"manul_\w+", table)) <= known <= set(re.findall(r"manul_\w+", PAGE))


def test_alerts_on_latency_ask_for_a_bucket_and_a_route_that_exist():
    (slow,) = (rule["expr"] for rule in RULES if "histogram_quantile" in rule["expr"])
    assert float(slow.rpartition("> ")[2]) in SECONDS
    assert re.search(r'route="(\w+)"', slow)[1] in {each.name for each in OPERATIONS}


def test_every_alert_says_what_is_wrong():
    assert len({rule["alert"] for rule in RULES}) == len(RULES)
    assert all(rule["annotations"]["summary"].endswith(".") for rule in RULES)
