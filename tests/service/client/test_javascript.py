"""The JavaScript client in Node: against a real service, and against one that fails."""

import inspect
import json
import re
import shutil
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

import manul
from manul.service import wire
from manul.service.client.calls import Calls
from tests.js.node import NODE, typescript
from tests.markdown import ROOT
from tests.service.processes import Process

pytestmark = pytest.mark.whole
CLIENT = ROOT / "js/client.js"


def play(folder, script):
    """What a script prints as JSON; the client is a module beside it, whatever package.json says."""
    shutil.copy(CLIENT, folder / "client.mjs")
    (folder / "script.mjs").write_text('import { Client, ServiceError } from "./client.mjs"\n' + script)
    said = subprocess.run([NODE, "script.mjs"], cwd=folder, capture_output=True, text=True, check=False, timeout=300)
    assert said.returncode == 0, said.stderr
    return json.loads(said.stdout)


class Failing:
    """A service that answers with some statuses first, and remembers what it was asked."""

    def __init__(self, *answers):
        self.asked, left = [], list(answers)
        asked = self.asked

        class Handler(BaseHTTPRequestHandler):
            def answer(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                asked.append((self.command, self.path, body.decode()))
                status, headers, said = left.pop(0) if left else (200, {}, {"id": "x", "status": "recorded"})
                if status is None:
                    self.connection.close()
                    return
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(json.dumps(said).encode())

            do_GET = do_POST = do_PUT = do_DELETE = answer  # noqa: N815 - names of the library

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


def test_it_has_the_methods_of_the_client_in_python():
    def camel(name):
        first, *rest = name.split("_")
        return first + "".join(map(str.title, rest))

    calls = {camel(name) for name in vars(Calls) if not name.startswith("_")}
    methods = set(re.findall(r"^  (?:async )?([a-z]\w*)\(", CLIENT.read_text(), re.MULTILINE)) - {"constructor"}
    declared = set(re.findall(r"^  ([a-z]\w*)\(.*\): Promise<", CLIENT.with_suffix(".d.ts").read_text(), re.MULTILINE))
    assert methods == declared == calls


def test_decisions_are_sent_with_every_field(tmp_path):
    with Failing((200, {}, {"decisions": []}), (200, {}, {"decisions": []})) as service:
        script = """
const client = new Client("URL"), at = new Date(Date.UTC(2024, 1, 29, 12))
const all = { within: [1, 2], id: "a", action: 1.5, at }
await client.decide("ads", [0.5], all)
await client.decideMany("ads", [{ context: [0.5], ...all }])
console.log("null")
"""
        play(tmp_path, script.replace("URL", service.url))
    alone, batch = (json.loads(body) for _, _, body in service.asked)
    assert batch["decisions"] == [alone]
    assert alone.keys() == {*wire.NewDecision.__struct_fields__}
    assert alone["at"] == "2024-02-29T12:00:00.000Z"


def test_numbers_that_json_cannot_have_are_refused_instead_of_left_out(tmp_path):
    script = """
const client = new Client("http://127.0.0.1:9", { retries: 0 }), said = []
const ask = promise => promise.then(() => said.push(null), error => said.push(error.field))
await ask(client.observe("a", { action: 1, density: NaN }))
await ask(client.observeMany("a", [{ action: 1, loss: Infinity }]))
await ask(client.reportLoss("a", "b", { reward: NaN }))
await ask(client.reportLosses("a", [{ id: "b", loss: NaN }]))
await ask(client.observe("a", { action: { x: 1 }, densities: { x: NaN } }))
await ask(client.changeBudget("a", NaN))
console.log(JSON.stringify(said))
"""
    assert play(tmp_path, script) == ["density", "loss", "reward", "loss", "x", "amount"]


def test_its_numbers_are_those_of_the_client_in_python():
    text = CLIENT.read_text()
    from manul.service.client import calls, exchange

    for name in ("FIRST_PAUSE", "LONGEST_PAUSE", "TOO_MANY", "LONGEST_WAIT"):
        assert float(re.search(rf"^const {name} = (.+)$", text, re.MULTILINE)[1]) == getattr(exchange, name)
    assert int(re.search(r"^const BATCH = (.+)$", text, re.MULTILINE)[1]) == calls.BATCH
    assert json.loads(re.search(r"^const BUSY = (.+)$", text, re.MULTILINE)[1]) == list(exchange.BUSY)
    defaults = inspect.signature(manul.Client).parameters
    assert int(re.search(r"retries = (\d+)", text)[1]) == defaults["retries"].default
    assert float(re.search(r"timeout = (\d+)", text)[1]) == defaults["timeout"].default


SCRIPT = """
const client = new Client("URL")
const said = { created: await client.create({ name: "heating", actions: [20, 70] }) }
await client.create({ name: "helper", actions: { x: [0, 1], y: { options: ["a", "b"] } } })
const context = { city: "Oslo", at: new Date(Date.UTC(2024, 1, 29, 12, 30)), missing: NaN, never: new Date(NaN), whole: 31n }
const one = await client.decide("heating", context, { within: [30, 40] })
const many = await client.decideMany("heating", Array.from({ length: 1001 }, (_, n) => ({ context, id: `visit-${n}` })))
const again = await client.decideMany("heating", [{ context, id: "visit-7" }])
said.within = one.action >= 30 && one.action <= 40
said.repeated = JSON.stringify(again[0]) === JSON.stringify(many[7])
said.loss = await client.reportLoss("heating", one, { loss: 0.25 })
said.losses = (await client.reportLosses("heating", many.slice(0, 3).map(decision => ({ decision, loss: 0.5 })))).length
const model = await client.model("heating")
const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", model))
said.signature = Array.from(digest, byte => byte.toString(16).padStart(2, "0")).join("")
said.observed = await client.observe("heating", { context, action: 30, loss: 0.1 })
said.batch = (await client.observeMany("heating", [{ context, action: 30 }, { context, action: 31, loss: 1 }])).length
said.log = String.fromCharCode(...(await client.log("heating")).slice(0, 4))
said.paused = (await client.pause("heating")).paused
said.resumed = (await client.resume("heating")).paused
said.replaced = (await client.replace("heating", model)).name
said.rollout = (await client.startRollout("heating", { baseline: 45 })).status
said.aborted = (await client.abortRollout("heating")).status
said.loops = (await client.loops()).map(each => each.name)
said.error = await client.decide("none").catch(({ name, status, code, field, message }) => ({ name, status, code, field, message }))
said.refused = await client.decide("heating", context, { within: [0, 1] }).catch(({ status, field }) => ({ status, field }))
said.status = await client.status("heating")
said.report = Object.keys(await client.report("heating")).length
await client.create({ name: "ads", actions: [0, 40], rewards: "auto", formula: "(value - action) * won",
  parts: { won: "yes/no", value: "amount" }, spend_at_most: ["won * action", 2000, "day"] })
said.paid = (await client.decide("ads", context, { at: new Date() })).density > 0
said.budget = (await client.changeBudget("ads", 3000)).budget.amount
said.deleted = await client.delete("helper")
said.reset = (await client.reset("heating")).decisions
console.log(JSON.stringify(said))
"""


def test_every_call_of_a_loop_works_with_a_service(tmp_path):
    process = Process(tmp_path)
    try:
        said = play(tmp_path, SCRIPT.replace("URL", f"http://127.0.0.1:{process.port}"))
    finally:
        process.kill()
    assert said["created"]["name"] == said["replaced"] == "heating"
    assert said["within"] is said["repeated"] is said["paused"] is True
    assert said["resumed"] is False
    assert said["loss"]["status"] == "recorded"
    assert (said["losses"], said["batch"], said["log"]) == (3, 2, "PAR1")
    assert re.fullmatch("[0-9a-f]{64}", said["signature"])
    assert (said["rollout"], said["aborted"]) == ("waiting", "aborted")
    assert said["loops"] == ["heating", "helper"]
    message = "loop 'none' does not exist. Create it with POST /v1/loops."
    assert said["error"] == {
        "name": "ServiceError",
        "status": 404,
        "code": "not_found",
        "field": "loop",
        "message": message,
    }
    assert said["refused"] == {"status": 422, "field": "within"}
    assert said["status"]["decisions"] == 1005
    assert said["deleted"] == {"name": "helper"}
    assert said["reset"] == 0
    assert said["paid"] is True
    assert said["budget"] == 3000


BUSY = (503, {}, {"error": {"code": "unavailable", "message": "busy"}})
WAITS = "const waits = []; const client = new Client('URL', { wait: async seconds => { waits.push(seconds) }, retries: 3 });\n"


def test_a_busy_service_is_asked_again_with_the_same_id(tmp_path):
    with Failing(BUSY, (502, {}, {}), (None, {}, {})) as service:
        script = WAITS + "await client.decide('heating', [0.5]); console.log(JSON.stringify(waits))"
        waits = play(tmp_path, script.replace("URL", service.url))
    assert len(waits) == 3
    assert all(least <= wait <= 2 * least for wait, least in zip(waits, (0.025, 0.05, 0.1), strict=True))
    assert len(set(service.asked)) == 1
    assert len(json.loads(service.asked[0][2])["id"]) == 32


def test_it_waits_as_long_as_a_rate_limit_says_unless_that_is_long(tmp_path):
    refused = {"error": {"code": "rate_limited", "message": "The rate limit is exceeded."}}
    with Failing((429, {"Retry-After": "7"}, refused), (429, {"Retry-After": "31"}, refused)) as service:
        script = WAITS + (
            "const failed = await client.status('heating').catch(error => error.message)\n"
            "console.log(JSON.stringify([waits.length, Math.floor(waits[0]), failed]))"
        )
        assert play(tmp_path, script.replace("URL", service.url)) == [1, 7, "The rate limit is exceeded."]


@pytest.mark.parametrize(("answer", "attempts"), [(BUSY, 2), ((502, {}, {}), 1), ((None, {}, {}), 1)])
def test_a_reset_is_sent_again_only_if_it_had_no_effect(tmp_path, answer, attempts):
    with Failing(answer) as service:
        script = WAITS + "console.log(JSON.stringify(await client.reset('heating').then(() => true, () => false)))"
        assert play(tmp_path, script.replace("URL", service.url)) is (attempts == 2)
    assert len(service.asked) == attempts


def test_a_service_that_cannot_be_reached_is_one_sentence(tmp_path):
    with Failing() as service:
        url = service.url
    script = WAITS + (
        "console.log(JSON.stringify(await client.loops().catch(({ message, code, status }) => [message, code, status])))"
    )
    message, code, status = play(tmp_path, script.replace("URL", url))
    assert message == "The service cannot be reached (ECONNREFUSED). Check the URL, and that manul serve is running."
    assert (code, status) == ("unreachable", None)


USES = """
import { Client, ServiceError, type Decision, type Rollout } from "./client.js"
const client = new Client("http://127.0.0.1:8000", { token: "t", retries: 2 })
await client.create({ name: "heating", actions: [20, 70], agent: { kind: "cats", leaves: 16, bandwidth: 1 / 8 } })
const decision: Decision = await client.decide("heating", { city: "Oslo", at: new Date() }, { within: [30, 40], id: "visit-1" })
await client.reportLoss("heating", decision, { loss: 0.25 })
await client.reportLosses("heating", [{ decision, loss: 0.5 }, { id: "visit-2", reward: 3 }])
await client.observe("heating", { context: [1, 2], action: 30, density: 0.1, model: "0".repeat(64), number: 7, copy: "phone" })
const rollout: Rollout = await client.startRollout("heating", { baseline: 45, guard: { returned: ["<=", 1.02] } })
await client.create({ name: "ads", actions: [0, 40], spend_at_most: ["won * action", 2000, "day"] })
const left: number | undefined = (await client.changeBudget("ads", 3000)).budget?.left
const model: Uint8Array = await client.model("heating")
const failed = (error: unknown) => error instanceof ServiceError && console.log(error.status, error.field, rollout, model, left)
await client.decide("ads", {}, { at: new Date() })
await client.decideMany("ads", [{ context: [1, 2], at: new Date() }, { at: "2024-02-29T12:30:00Z" }])
await client.changeBudget("ads", 3000)
await client.delete("heating").catch(failed)
"""
WRONG = {
    'client.decide("heating", {}, { wihtin: [30, 40] })': "wihtin",
    'client.create({ name: "heating" })': "actions",
    'client.reportLoss("heating", 7, { loss: 1 })': "number",
    'client.startRollout("heating", {})': "baseline",
}


def test_its_types_accept_every_use_and_refuse_mistakes(tmp_path):
    assert typescript(tmp_path, USES, "client") == ""
    said = typescript(tmp_path, USES + "\n".join(WRONG), "client")
    assert said.count("error TS") == len(WRONG)
    assert all(word in said for word in WRONG.values())
