"""`manul budget` against a real service."""

import json

import pytest
from click.testing import CliRunner

from manul.cli import main
from tests.cli.test_commands import one_sentence
from tests.service.processes import Process
from tests.service.test_budgets import ADS, auction, parts_of

pytestmark = pytest.mark.whole


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    """A service with a loop with a budget, and one without."""
    service = Process(tmp_path_factory.mktemp("service"))
    limits = {"spend_at_most": ["won * action", 30.0, 20], "keep": ["won", ">=", 0.25]}
    for name, more in (("ads", limits), ("plain", {})):
        assert service.ask("POST", "/v1/loops", {"name": name, **ADS, **more})[0] == 201
    for number in range(30):
        made = service.ask("POST", "/v1/loops/ads/decisions", {"context": auction(number)[0]})[1]
        told = {"parts": parts_of(number, made["action"])}
        assert service.ask("POST", f"/v1/loops/ads/decisions/{made['id']}/loss", told)[0] == 200
    yield service
    assert service.stop() == 0


def invoke(service, *words):
    return CliRunner().invoke(main, ["budget", *words, "--url", f"http://127.0.0.1:{service.port}"])


def test_a_budget_is_shown_with_its_periods_and_what_is_kept(service):
    shown = invoke(service, "ads")
    assert shown.exit_code == 0, shown.output
    lines = shown.stdout.splitlines()
    assert lines[:2] == ["ads: won * action, at most 30 per 20 decisions", "available   30"]
    assert any(line.startswith("since 0: ") for line in lines)
    assert "ads: won >= 0.25" in lines


def test_the_amount_is_changed(service):
    shown = invoke(service, "ads", "--amount", "5000", "--json")
    assert shown.exit_code == 0, shown.output
    assert json.loads(shown.stdout)["budget"]["available"] == 5000.0
    assert json.loads(shown.stdout)["kept"]["value"] == 0.25


@pytest.mark.parametrize("amount", ["-5", "0"])
def test_an_amount_that_is_none_is_refused_in_one_sentence(service, amount):
    assert "amount" in one_sentence(invoke(service, "ads", "--amount", amount))


def test_a_loop_without_a_budget_says_so(service):
    assert invoke(service, "plain").stdout == "plain has neither a budget nor a rate to keep.\n"
    assert "plain" in one_sentence(invoke(service, "plain", "--amount", "5"))
