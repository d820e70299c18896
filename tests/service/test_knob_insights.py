"""What the service knows about each of several knobs, and about pairs of them."""

import numpy as np
import pytest

from manul.actions.kinds.choice import Choice
from manul.actions.kinds.span import Span
from manul.actions.kinds.stepped import Stepped
from manul.service.insights import loop_report
from tests.service.conftest import Service, run
from tests.service.several_knobs import KNOBS, OFFERS
from tests.service.test_several_knobs import play


@run
async def test_the_summary_has_what_is_played_of_each_knob(tmp_path):
    async with Service(tmp_path / "a.db").running() as service:
        await service.post("", 201, **OFFERS)
        made = await play(service, 200)
        summary = await service.get("/offers/summary")
        price, discount, template = summary["knobs"]
        assert [each["name"] for each in summary["knobs"]] == list(KNOBS)
        options = [each["action"]["template"] for each in made]
        assert np.sum(template["played"], axis=0).tolist() == [options.count(each) for each in template["values"]]
        assert np.isclose(np.sum(template["density"]), 1)
        assert np.isclose(np.sum(price["density"]) * 40 / 32, 1)
        assert np.isclose(np.sum(discount["density"]) * 0.3 / 32, 1)
        assert summary["history"]["played"] == summary["density"] == []


@run
async def test_a_loop_without_decisions_has_an_empty_summary(tmp_path):
    async with Service(tmp_path / "a.db").running() as service:
        await service.post("", 201, **OFFERS)
        summary = await service.get("/offers/summary")
        assert [each["density"] for each in summary["knobs"]] == [[], [], []]
        pair = await service.get("/offers/pair")
        assert (pair["predicted"], np.sum(pair["count"])) == ([], 0)
        assert (await service.get("/offers/policy"))["values"] == []


@run
async def test_a_pair_has_the_losses_of_recent_decisions_and_predictions(tmp_path):
    async with Service(tmp_path / "a.db").running() as service:
        await service.post("", 201, **OFFERS)
        await play(service, 300)
        pair = await service.get("/offers/pair?first=template&second=price")
        assert (pair["first_values"], len(pair["second_values"])) == (["plain", "bold", "long"], 16)
        assert np.sum(pair["count"]) == 300
        means = np.array([[0.0 if loss is None else loss for loss in row] for row in pair["loss"]])
        status = await service.get("/offers")
        assert np.isclose(np.sum(means * pair["count"]) / 300, status["mean_loss"])
        predicted = np.array(pair["predicted"])
        assert predicted.shape == (3, 16)
        assert predicted.min(axis=1).argmin() == 1


@run
async def test_unknown_knobs_of_views_are_refused(tmp_path):
    async with Service(tmp_path / "a.db").running() as service:
        await service.post("", 201, **OFFERS)
        await service.post("", 201, name="heat", actions=[20, 70])
        said = await service.refused(422, "/v1/loops/offers/pair?first=prise", b"", method="GET", field="first")
        assert said == "first must be one of price, discount, template, got 'prise'. Did you mean price?"
        assert await service.refused(422, "/v1/loops/heat/pair", b"", method="GET") == "loop 'heat' has one knob."
        await service.refused(422, "/v1/loops/heat/policy?knob=price", b"", method="GET", field="knob")


@run
async def test_the_policy_of_a_knob_follows_a_feature(tmp_path):
    async with Service(tmp_path / "a.db").running() as service:
        await service.post("", 201, **OFFERS)
        await play(service, 600)
        view = await service.get("/offers/policy?feature=0&knob=price")
        assert (view["knob"], len(view["cells"])) == ("price", 32)
        assert view["mean"][0] < view["mean"][-1]
        assert (await service.get("/offers/policy?feature=0&knob=template"))["mean"] == []


@run
async def test_the_report_judges_each_knob_by_its_own_densities(tmp_path):
    async with Service(tmp_path / "a.db").running() as service:
        await service.post("", 201, **OFFERS, agent={"kind": "auto", "epsilon": 0.2})
        await play(service, 600)
        report = await service.get("/offers/report")
        losses = {each["name"]: each["loss"] for each in report["candidates"]}
        assert losses["greedy"] < losses["played"]
        assert losses["constant template bold"] < losses["played"]
        assert report["exploration"]["explored"] > 100
        assert report["beliefs"]["rounds"] == 600
        loop = service.engine.loop("offers")
        findings = loop_report.examine(service.engine.store, loop, loop.model.snapshot(), 0.0).findings
        assert [each.title for each in findings if each.severity == "error"] == []


@run
async def test_too_many_combinations_of_options_leave_the_density_empty(tmp_path):
    async with Service(tmp_path / "a.db").running() as service:
        many = {f"k{each}": {"options": list(range(10))} for each in range(4)}
        await service.post("", 201, name="many", actions=many)
        made = await service.post("/many/decisions", context=[1])
        await service.post(f"/many/decisions/{made['id']}/loss", loss=0.5)
        await service.learned("many", 1)
        assert [each["density"] for each in (await service.get("/many/summary"))["knobs"]] == [[]] * 4
        assert (await service.get("/many/policy"))["density"] == [[]]


def test_cells_contain_their_middles():
    for knob in (Span(-2.0, 8.0), Stepped(1, 14, 1), Stepped(0, 99, 0.5), Choice(["a", 2])):
        places = knob.cells(knob.positions(knob.middles(), "knob"))
        assert places.tolist() == list(range(knob.cell_count))


@pytest.mark.parametrize(
    ("query", "names"),
    [("", "price discount"), ("?first=discount", "discount price"), ("?second=price", "discount price")],
)
def test_a_knob_is_paired_with_another_by_default(tmp_path, query, names):
    @run
    async def view():
        async with Service(tmp_path / "a.db").running() as service:
            await service.post("", 201, **OFFERS)
            pair = await service.get(f"/offers/pair{query}")
            assert f"{pair['first']} {pair['second']}" == names

    view()
