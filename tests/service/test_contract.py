"""Whatever schemathesis thinks of, no answer is a 5xx or outside of the description."""

import json

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

from manul.service.http.openapi import document
from manul.service.http.route_table import OPERATIONS
from tests.service.processes import Process

pytestmark = pytest.mark.whole

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
KNOWN = {"loop": "heat", "id": "order-1"}


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    service = Process(tmp_path_factory.mktemp("contract"))
    service.ask("POST", "/v1/loops", {"name": "heat", "actions": [20, 70]})
    for number in range(1, 4):
        service.ask("POST", "/v1/loops/heat/decisions", {"context": [1, 2], "id": f"order-{number}"})
    service.ask("POST", "/v1/loops/heat/decisions/order-2/loss", {"loss": 0.5})
    yield service
    assert service.stop() == 0


@pytest.fixture(scope="module")
def described():
    return schemathesis.openapi.from_dict(document())


@pytest.mark.parametrize("each", OPERATIONS, ids=lambda each: each.name)
def test_no_answer_is_outside_of_the_description(served, described, each):
    asked = described[each.path][each.method]

    @settings(
        max_examples=12,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(
        case=st.one_of(asked.as_strategy(), asked.as_strategy(generation_mode=schemathesis.GenerationMode.NEGATIVE)),
        known=st.booleans(),
    )
    def check(case, known):
        if known and case.path_parameters:
            case.path_parameters = {name: KNOWN[name] for name in case.path_parameters}
        case.call_and_validate(base_url=f"http://127.0.0.1:{served.port}", checks=CHECKS)

    check()


def test_the_description_and_its_page_are_served(served):
    assert served.ask("GET", "/openapi.json")[1] == json.loads(json.dumps(document()))
    connection = served.connection()
    connection.request("GET", "/docs")
    page = connection.getresponse().read().decode()
    connection.close()
    assert "openapi.json" in page
    assert "http://" not in page
    assert "https://" not in page
