"""The package for JavaScript in Node: decisions, densities and saved bytes are those of Python."""

import json

import pytest

import manul
from tests import edge_agents
from tests.js.node import JS, node
from tests.markdown import ROOT, blocks

pytestmark = pytest.mark.whole
LONG = {"cats-rows", "cats-named", "auto-rows", "auto-knobs-limits"}
DECISIONS = 10_000  # of each of these four
BEST = 50  # rounds that also ask for the best action


def rounds(name, agent):
    """What Python plays, as Node reads it."""
    for number in range(DECISIONS if name in LONG else 200):
        context, within = edge_agents.context(name, number), edge_agents.within(name, number)
        decision = agent.decide(context, within)
        outcome = edge_agents.outcome(name, number, decision.action)
        played = {"context": context, "within": within, "outcome": outcome, "action": decision.action}
        played |= {"density": decision.density, "floor": decision.floor}
        yield played | ({"best": agent.best(context, within)} if number < BEST else {})
        agent.learn(context, decision, **{agent.outcome.keyword: outcome})


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """A folder with what Node has saved, and what Python has."""
    folder, saved = tmp_path_factory.mktemp("node"), {}
    for name, make in edge_agents.AGENTS.items():
        agent = make()
        (folder / f"{name}.manul").write_bytes(manul.dumps(agent))
        (folder / f"{name}.json").write_text(json.dumps(list(rounds(name, agent))), encoding="utf-8")
        saved[name] = manul.dumps(agent)
    (folder / "names.json").write_text(json.dumps(list(saved)))
    node("test/agent.js", folder)
    return folder, saved


@pytest.mark.parametrize("name", edge_agents.AGENTS)
def test_what_node_has_learned_is_what_python_has_learned_to_the_byte(played, name):
    folder, saved = played
    assert (folder / f"{name}.saved").read_bytes() == saved[name]


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    """The file of an agent that sets a price, and has learned."""
    agent = manul.Auto(actions=(5, 40), rewards=(0, 50), seed=7)
    for number in range(40):
        context = {"city": ["Oslo", "Bergen"][number % 2], "age": number}
        agent.learn(context, agent.decide(context), reward=number % 7)
    path = tmp_path_factory.mktemp("shop") / "price.manul"
    agent.save(path)
    return path


def test_the_tests_of_the_package_pass(shop):
    printed = node("--test", "test/manul.test.js", MANUL_FILE=str(shop))
    assert "fail 0" in printed


@pytest.mark.parametrize("page", [ROOT / "docs" / "edge.md", JS / "README.md"], ids=["edge", "README"])
def test_the_example_of_a_page_runs(page, shop):
    block, _ = (block.text for block in blocks(page) if block.kind == "js")
    before = """
      import { readFileSync } from 'node:fs'
      const bytes = readFileSync(process.env.MANUL_FILE)
      globalThis.fetch = async () => new Response(bytes)
    """
    printed = node(
        "--input-type=module", "--eval", f"{before}{block}console.log(decision.action)", MANUL_FILE=str(shop)
    )
    assert 10 <= float(printed) <= 20
