"""Whatever is sent, the answer is one sentence in the one shape, and nothing is stored."""

import json

import pytest

from manul.service.configuration import Limits
from manul.service.http import tokens
from tests.service.conftest import Service, run

DECIDE = "/v1/loops/heat/decisions"


@pytest.mark.parametrize(
    ("status", "path", "body", "field"),
    [
        (404, "/v1/loops/cool/decisions", {"context": [1, 2]}, "loop"),
        (404, f"{DECIDE}/~99/loss", {"loss": 0.5}, "id"),
        (404, f"{DECIDE}/nobody/loss", {"loss": 0.5}, "id"),
        (404, f"{DECIDE}/~99999999999999999999999/loss", {"loss": 0.5}, "id"),
        (404, "/v1/nothing", {}, None),
        (405, "/healthz", {}, None),
        (400, DECIDE, b'{"context": [NaN, 1]}', None),
        (400, DECIDE, b'{"context": [1, ', None),
        (400, DECIDE, b"\xff\xfe", None),
        (400, DECIDE, b"", None),
        (422, DECIDE, b'{"context": [1e999, 1]}', "context[0]"),
        (422, DECIDE, {"context": [1e308, 1]}, "context"),
        (422, DECIDE, b'{"context": [1' + b"0" * 400 + b", 1]}", "context[0]"),
        (422, DECIDE, {"context": ["a", "b"]}, "context[0]"),
        (422, DECIDE, {"context": [True, 1]}, "context[0]"),
        (422, DECIDE, {"context": [[1], [2]]}, "context[0]"),
        (422, DECIDE, {"context": 7}, "context"),
        (422, DECIDE, {"context": [1, 2, 3]}, "context"),
        (422, DECIDE, {"context": {"a": 1}}, "context"),
        (422, DECIDE, [], None),
        (422, DECIDE, {"kontext": [1, 2]}, "kontext"),
        (422, DECIDE, {"context": [1, 2], "within": [10, 90]}, "within"),
        (422, DECIDE, {"context": [1, 2], "within": [40, 30]}, "within"),
        (422, DECIDE, {"context": [1, 2], "within": [40]}, "within"),
        (422, DECIDE, {"context": [1, 2], "id": "~1"}, "id"),
        (422, DECIDE, {"context": [1, 2], "id": "a/b"}, "id"),
        (422, DECIDE, {"context": [1, 2], "id": ""}, "id"),
        (422, DECIDE, {"context": [1, 2], "id": "a" * 200}, "id"),
        (422, f"{DECIDE}/~1/loss", {"loss": 1.5}, "loss"),
        (422, f"{DECIDE}/~1/loss", {"loss": "0.5"}, "loss"),
        (422, f"{DECIDE}/~1/loss", {}, "loss"),
        (422, f"{DECIDE}/batch", {"decisions": []}, "decisions"),
        (422, f"{DECIDE}/batch", {"decisions": [{"context": [1, 2]}, {"context": [1]}]}, "context"),
        (422, f"{DECIDE}/batch", {"decisions": [{"context": [1, 2]}] * 21}, "decisions"),
        (422, "/v1/loops/heat/losses", {"losses": []}, "losses"),
        (422, "/v1/loops/heat/observations", {"context": [1, 2], "action": 80}, "action"),
        (422, "/v1/loops/heat/observations", {"context": [1, 2], "action": 30, "density": -1}, "density"),
        (422, "/v1/loops/heat/observations", {"context": [1, 2], "action": 30, "loss": 3}, "loss"),
        (422, "/v1/loops", {"name": "a b", "actions": [0, 1]}, "name"),
        (422, "/v1/loops", {"name": "a", "actions": [0, 1], "agent": {"kind": "other"}}, "agent.kind"),
        (413, DECIDE, b'{"context": [' + b"1," * 5_000_000 + b"1]}", None),
    ],
)  # fmt: skip
@run
async def test_bad_requests_are_refused(tmp_path, status, path, body, field):
    service = Service(tmp_path / "decisions.db", limits=Limits(batch=20))
    async with service.running():
        await service.post("", 201, name="heat", actions=[20, 70])
        await service.post("/heat/decisions", context=[1, 2])
        message = await service.refused(status, path, body, field=field)
        assert message.endswith(".")
        assert str(tmp_path) not in message
        assert len(message) < 400


@pytest.mark.parametrize("depth", [40, 100_000])
@run
async def test_deep_nesting_is_refused_and_leaves_no_trace(service, depth):
    async with service.running():
        await service.post("", 201, name="heat", actions=[20, 70])
        deep = b'{"context": ' + b'{"a":' * depth + b"1" + b"}" * depth + b"}"
        answer = await service.client.post(DECIDE, content=deep)
        assert answer.status_code in (400, 422)
        await service.post("/heat/decisions", context=[1, 2])


@run
async def test_a_refused_first_context_does_not_fix_the_shape(service):
    async with service.running():
        await service.post("", 201, name="heat", actions=[20, 70])
        await service.refused(422, DECIDE, {"context": {"a": [{"b": 1e300}]}}, field="context")
        await service.post("/heat/decisions", context=[1, 2])


@run
async def test_tokens_are_asked_for_and_their_rights_hold(tmp_path):
    secrets = {right: tokens.new_token() for right in tokens.RIGHTS}
    file = tmp_path / "tokens"
    file.write_text("\n".join(tokens.line(secret, [right]) for right, secret in secrets.items()))
    assert not any(secret in file.read_text() for secret in secrets.values())
    service = Service(tmp_path / "decisions.db", tokens=tokens.read(file))
    bearer = {right: {"Authorization": f"Bearer {secret}"} for right, secret in secrets.items()}
    async with service.running():
        made = await service.client.post(
            "/v1/loops", content=json.dumps({"name": "heat", "actions": [0, 1]}), headers=bearer["admin"]
        )
        assert made.status_code == 201
        await service.refused(401, DECIDE, {"context": [1]})
        await service.refused(401, DECIDE, {"context": [1]}, Authorization="Bearer wrong")
        await service.refused(401, DECIDE, {"context": [1]}, Authorization="Basic abc")
        await service.refused(403, DECIDE, {"context": [1]}, **bearer["report"])
        await service.refused(403, "/v1/loops", {"name": "b", "actions": [0, 1]}, **bearer["decide"])
        await service.refused(403, "/v1/loops/heat/losses", {"losses": []}, **bearer["decide"])
        for right in ("decide", "admin"):
            answer = await service.client.post(DECIDE, content=b'{"context": [1]}', headers=bearer[right])
            assert answer.status_code == 200
        assert (await service.client.get("/healthz")).status_code == 200
        assert (await service.client.get("/metrics")).status_code == 401
