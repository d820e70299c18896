"""Whatever schemathesis thinks of, no answer is a 5xx or outside of the description."""

import json
import re

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from manul.service.http import tokens
from manul.service.http.openapi import document
from manul.service.http.route_table import OPERATIONS
from tests.service.processes import Process
from tests.service.several_knobs import OFFERS

pytestmark = pytest.mark.whole

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
# A loop with one number, one with several knobs, one with a rollout, whose decisions come from the caller, and one with a budget.
ADS = {"actions": [0, 40], "rewards": "auto", "formula": "(9 - action) * won", "parts": {"won": "yes/no"}}
LOOPS = (
    {"name": "heat", "actions": [20, 70], "rewards": [0, 1]},
    OFFERS,
    {"name": "rolling", "actions": {"options": ["plain", "bold"]}},
    {"name": "ads", **ADS, "spend_at_most": ["won * action", 50, "day"], "keep": ["won", ">=", 0.5]},
)
OUTCOMES = ({"reward": 0.5}, {"loss": 0.5}, {"loss": 0.5}, {"parts": {"won": True}})


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    folder = tmp_path_factory.mktemp("contract")
    token = tokens.add(folder / "tokens", ["admin"])
    service = Process(folder, "decisions.db", "--token-file", folder / "tokens")
    service.token = token
    for loop in LOOPS:
        assert service.ask("POST", "/v1/loops", loop)[0] == 201
    rollout = {"baseline": "caller", "steps": [0.5, 1]}
    assert service.ask("PUT", "/v1/loops/rolling/rollout", rollout)[0] == 200
    for loop, outcome in zip(LOOPS, OUTCOMES, strict=True):
        path = f"/v1/loops/{loop['name']}/decisions"
        more = {"action": "bold"} if loop["name"] == "rolling" else {}
        for number in range(1, 4):
            assert service.ask("POST", path, {"context": [1, 2], "id": f"order-{number}", **more})[0] == 200
        assert service.ask("POST", f"{path}/order-2/loss", outcome)[0] == 200
    yield service
    assert service.stop() == 0


@pytest.fixture(scope="module")
def described():
    return schemathesis.openapi.from_dict(document())


@pytest.mark.parametrize("each", OPERATIONS, ids=lambda each: each.name)
def test_no_answer_is_outside_of_the_description(served, described, each):
    asked = described[each.path][each.method]

    @settings(
        max_examples=16,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(
        case=st.one_of(asked.as_strategy(), asked.as_strategy(generation_mode=schemathesis.GenerationMode.NEGATIVE)),
        known=st.sampled_from([None, *(loop["name"] for loop in LOOPS)]),
        has_token=st.integers(0, 9).map(bool),
    )
    def check(case, known, has_token):
        if known is not None and case.path_parameters and each.name not in ("delete", "reset"):
            case.path_parameters = {name: {"loop": known, "id": "order-1"}[name] for name in case.path_parameters}
        headers = {"Authorization": f"Bearer {served.token}"} if has_token else {}
        base = f"http://127.0.0.1:{served.port}"
        case.call_and_validate(base_url=base, headers=headers, checks=CHECKS)

    check()


def test_generated_requests_were_accepted_and_refused_in_many_ways(served):
    connection = served.connection()
    connection.request("GET", "/metrics", headers={"Authorization": f"Bearer {served.token}"})
    counted = re.findall(
        r'manul_requests_total{route="(\w+)",status="(\d+)"}', connection.getresponse().read().decode()
    )
    connection.close()
    assert {"200", "201", "401", "404", "422"} <= {status for _, status in counted}
    assert len({route for route, status in counted if status == "200"}) > len(OPERATIONS) / 2


def test_the_description_and_its_page_are_served(served):
    assert served.ask("GET", "/openapi.json")[1] == json.loads(json.dumps(document()))
    connection = served.connection()
    connection.request("GET", "/docs")
    page = connection.getresponse().read().decode()
    connection.close()
    assert "openapi.json" in page
    assert "http://" not in page
    assert "https://" not in page
