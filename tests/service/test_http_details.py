"""What the service says besides its bodies: headers, and who needs a token."""

import base64
import hashlib
import re

import msgspec
import pytest

from manul.service.http.tokens import Access, Tokens
from tests.service.conftest import Service, run


@pytest.fixture
def service(tmp_path):
    return Service(tmp_path / "decisions.db")


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("PUT", "/v1/loops", {"POST", "GET", "HEAD"}),
        ("POST", "/v1/loops/heat", {"GET", "HEAD", "DELETE"}),
        ("POST", "/healthz", {"GET", "HEAD"}),
        ("POST", "/dashboard/app.js", {"GET", "HEAD"}),
    ],
)
@run
async def test_a_refused_method_is_told_those_that_are_allowed(service, method, path, allowed):
    async with service.running():
        answer = await service.client.request(method, path)
    assert answer.status_code == 405
    assert set(answer.headers["allow"].split(", ")) == allowed


@run
async def test_the_page_of_the_api_runs_its_own_script_and_no_other(service):
    async with service.running():
        answer = await service.client.get("/docs")
    (script,) = re.findall(r"<script>(.*?)</script>", answer.text, re.DOTALL)
    own = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = dict(each.split(" ", 1) for each in answer.headers["content-security-policy"].split("; "))
    assert policy["script-src"] == f"'sha256-{own}'"
    assert policy["default-src"] == "'self'"
    assert policy["frame-ancestors"] == "'none'"


@pytest.mark.parametrize("tokens", [Tokens(), Tokens([Access("a", frozenset(["admin"]))])])
@run
async def test_the_description_asks_for_a_token_only_if_there_are_tokens(tmp_path, tokens):
    async with Service(tmp_path / "decisions.db", tokens=tokens).running() as service:
        described = (await service.client.get("/openapi.json")).json()
    decide = described["paths"]["/v1/loops/{loop}/decisions"]["post"]
    assert bool(decide["security"]) == ("securitySchemes" in described["components"]) == bool(tokens)
    assert described["components"]["schemas"]["NewLoss"]["anyOf"] == [
        {"required": [name]} for name in ("loss", "reward", "parts")
    ]


@run
async def test_a_knob_with_a_null_character_in_its_name_is_refused(service):
    async with service.running():
        answer = await service.client.post("/v1/loops", json={"name": "a", "actions": {"p\0": [0, 1], "q": [0, 1]}})
    assert answer.status_code == 422
    assert "must have no null character, got 'p\\x00'" in answer.json()["error"]["message"]


@run
async def test_a_loop_of_an_earlier_version_with_such_a_name_says_why_it_has_no_log(service):
    body = msgspec.json.encode({"name": "old", "actions": {"p\0": [0, 1], "q": [0, 1]}, "rewards": None})
    async with service.running():
        await service.engine.write(lambda tx: tx.add_loop("old", body, 1.0, apprentice=False))
    async with service.running():
        decision = await service.post("/old/decisions", context=[1.0])
        await service.post(f"/old/decisions/{decision['id']}/loss", loss=0.5)
        await service.learned("old", 1)
        for path in ("log", "report"):
            answer = await service.client.get(f"/v1/loops/old/{path}")
            assert answer.status_code == 409
            assert answer.json()["error"]["message"].startswith("The decisions of this loop cannot be written as a log")


@pytest.mark.parametrize("value", [{"$date": "rubbish", "tz": 1}, {"$time": "12:30", "tz": 1}])
@pytest.mark.parametrize("place", [lambda value: {"at": value}, lambda value: {"at": [{"deep": value}]}])
@run
async def test_a_date_with_other_fields_beside_it_is_refused(service, value, place):
    async with service.running():
        await service.post("", 201, name="heat", actions=[20, 70])
        for path, more in (("decisions", {}), ("observations", {"action": 30})):
            answer = await service.client.post(f"/v1/loops/heat/{path}", json={"context": place(value), **more})
            assert (answer.status_code, answer.json()["error"]["field"]) == (422, "context")
            assert "and other fields, tz" in answer.json()["error"]["message"]


@run
async def test_an_action_is_refused_by_a_rollout_that_has_another_baseline(service):
    async with service.running():
        await service.post("", 201, name="heat", actions=[20, 70])
        asked = {"context": [1.0], "action": 30}
        await service.post("/heat/decisions", **asked)  # without a rollout, it may be sent all the same
        await service.client.put("/v1/loops/heat/rollout", json={"baseline": 40})
        answer = await service.client.post("/v1/loops/heat/decisions", json=asked)
        assert (answer.status_code, answer.json()["error"]["field"]) == (422, "action")
        await service.client.put("/v1/loops/heat/rollout", json={"baseline": "caller"})
        await service.post("/heat/decisions", **asked)


@run
async def test_metrics_show_free_space_and_the_age_of_backups(tmp_path, service):
    (tmp_path / "monday.zip").write_bytes(b"")
    async with service.running(backups=tmp_path):
        text = (await service.client.get("/metrics")).text
    assert float(re.search(r"^manul_disk_free_bytes (\S+)$", text, re.MULTILINE)[1]) > 0
    assert 0 <= float(re.search(r"^manul_backup_age_seconds (\S+)$", text, re.MULTILINE)[1]) < 3600


@run
async def test_a_format_of_the_log_is_refused_instead_of_ignored(service):
    async with service.running():
        await service.post("", 201, name="heat", actions=[20, 70])
        said = await service.refused(422, "/v1/loops/heat/log?format=csv", b"", method="GET", field="format")
    assert said == (
        "the log is a Parquet file and has no parameters, got 'format'. `manul convert log.parquet log.csv` converts it."
    )
