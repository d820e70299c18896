"""`manul inspect`: what was learned, in words, in JSON and as a picture."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

import manul
from manul import checks
from manul.agents.player_host import host_of
from manul.cli import main
from manul.inspection.inspect import inspect

OSLO = '{"city": "Oslo", "age": 40}'


def manul_inspect(*arguments):
    return CliRunner().invoke(main, ["inspect", *map(str, arguments)])


def read(*arguments):
    result = manul_inspect(*arguments, "--json")
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout, parse_constant=pytest.fail)


def saved(agent, path):
    agent.save(path)
    return path


@pytest.fixture(scope="module")
def cities(tmp_path_factory):
    """Oslo wants small actions and Rome large ones, and age means nothing."""
    rng, agent = np.random.default_rng(0), manul.Cats(leaves=16, bandwidth=1 / 16)
    for city, age in zip(rng.choice(["Oslo", "Rome"], 4000), rng.normal(40, 9, 4000), strict=True):
        context = {"city": str(city), "age": float(age)}
        decision = agent.decide(context)
        agent.learn(context, decision, abs(decision.action - (0.2 if city == "Oslo" else 0.8)))
    return saved(agent, tmp_path_factory.mktemp("cities") / "agent.manul")


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    """Column 1 pushes up, column 2 down, and column 0 means nothing."""
    contexts = np.random.default_rng(0).uniform(-1, 1, (10_000, 3))
    agent = manul.Cats(leaves=64, bandwidth=1 / 32)
    manul.simulate(agent, manul.worlds.Regression(contexts, 0.5 + 0.3 * contexts[:, 1] - 0.15 * contexts[:, 2]))
    return saved(agent, tmp_path_factory.mktemp("rows") / "agent.manul")


def test_a_weight_alone_says_nothing_about_the_direction(cities):
    assert set(read(cities)["features"][0]) == {"name", "shared", "root", "weight"}
    assert "the action" not in manul_inspect(cities).stdout


def test_over_a_table_it_says_which_city_has_the_smaller_actions(cities, tmp_path):
    table = tmp_path / "table.csv"
    table.write_text("city,age,loss\n" + "".join(f"{city},{age},1\n" for city in ("Oslo", "Rome") for age in range(60)))
    (effects,) = read(cities, "--data", table)["effects"]
    found = {feature["name"]: feature for feature in effects["features"]}
    assert [value["direction"] for value in found["city"]["values"]] == ["lowers the action", "raises the action"]
    assert found["age"]["direction"] == "no clear direction"
    assert "  city     Oslo     -" in manul_inspect(cities, "--data", table).stdout


def test_a_table_without_any_field_of_the_policy_is_one_sentence(cities, tmp_path):
    (tmp_path / "table.csv").write_text("price\n1\n2\n")
    result = manul_inspect(cities, "--data", tmp_path / "table.csv")
    assert (result.exit_code, result.stderr.count("\n")) == (1, 1)
    assert "must have columns that the policy uses: age, city; got price." in result.stderr


def test_features_come_strongest_first(rows):
    found = read(rows)["features"]
    assert [each["name"] for each in found] == ["column 1", "column 2", "column 0"]
    assert [each["weight"] > 0 for each in found[:2]] == [True, False]
    assert found[0]["weight"] == found[0]["shared"] + found[0]["root"]


def test_the_page_shows_settings_counts_and_the_way_down(rows):
    page = manul_inspect(rows, "--context", "[0, 1, 0]").stdout
    for line in ("Cats\n", "  leaves          64\n", "  decisions       10,000\n", "  rounds learned  10,000\n"):
        assert line in page
    assert "\ncontext [0, 1, 0]\n" in page
    assert "path through the tree\n  node  margin" in page


def test_weights_of_rows_are_those_of_the_table(rows):
    agent = manul.load(rows)
    weights = host_of(agent).state()["weights"].reshape(64, -1)
    for row in (0, 1, 63):
        assert host_of(agent).native.weights(row, [0, 1, 2, 3]) == weights[row, :4].tolist()
    for row, features in ((64, [0]), (0, [4])):
        with pytest.raises(ValueError, match="rejected"):
            host_of(agent).native.weights(row, features)


def test_the_margin_at_the_root_is_the_sum_of_the_named_weights(cities):
    agent = manul.load(cities)
    named = {name: feature for feature, name in host_of(agent).native.names.items()}
    wanted = [named["city=Oslo"], 0]  # feature 0 is the constant
    expected = sum(host_of(agent).native.weights(0, wanted)) + sum(host_of(agent).native.weights(1, wanted))
    assert host_of(agent).native.route({"city": "Oslo"}, 0.0, 1.0)[0][1] == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("context", ["[0.5, -0.5, 0.25]", "[1, 1, 1]", "[-1, -1, 9]"])
def test_the_way_ends_in_the_leaf_that_is_played(rows, context):
    (played,) = read(rows, "--context", context)["played"]
    route, node = played["route"], 1
    for step in route["steps"]:
        assert step["node"] == node
        assert step["forced"] or (step["side"] == "right") == (step["margin"] >= 0)
        node = 2 * node + (step["side"] == "right")
    assert node - 64 == route["leaf"]
    assert route["action"] == pytest.approx(1 / 32 + (1 - 1 / 16) * (route["leaf"] + 0.5) / 64)
    assert np.mean(played["window"]) == pytest.approx(route["action"])


def test_looking_changes_nothing(cities):
    before = cities.read_bytes()
    assert read(cities, "--context", OSLO) == read(cities, "--context", OSLO)
    assert cities.read_bytes() == before


def test_what_is_played_is_the_distribution(cities):
    (played,) = inspect(cities, json.loads(OSLO)).played
    expected = manul.load(cities).distribution(json.loads(OSLO))
    assert played.as_dict()["expected_action"] == expected.mean() < 0.4
    assert played.density == expected.density_many([np.mean(played.window)])[0]


def test_several_contexts_are_compared(cities):
    oslo, rome = read(cities, "--context", OSLO, "--context", '{"city": "Rome"}')["played"]
    assert oslo["expected_action"] < 0.4 < 0.6 < rome["expected_action"]


def test_auto_shows_its_beliefs_and_the_loss_it_expects(tmp_path):
    agent = manul.Auto()
    for _ in range(300):
        decision = agent.decide([0.5])
        agent.learn([0.5], decision, abs(decision.action - 0.3))
    found = read(saved(agent, tmp_path / "auto.manul"), "--context", "[0.5]")
    assert (found["report"]["rounds"], found["rounds"]) == (300, 300)
    best, _ = min(found["played"][0]["curve"], key=lambda point: point[1])
    assert abs(best - 0.3) < 0.1
    page = manul_inspect(tmp_path / "auto.manul", "--context", "[0.5]").stdout
    assert "model of the loss\n" in page
    assert "lowest\n" in page


def test_mapped_features_have_the_names_of_their_map(tmp_path):
    contexts = np.random.default_rng(0).uniform(-1, 1, (10_000, 2))
    agent = manul.Mapped(agent=manul.Cats(leaves=64, bandwidth=1 / 32), features=manul.maps.Crosses())
    manul.simulate(agent, manul.worlds.Regression(contexts, 0.5 + 0.5 * contexts[:, 0] * contexts[:, 1]))
    found = read(saved(agent, tmp_path / "mapped.manul"), "--context", "[0.5, 1]")
    assert found["features"][0]["name"] == "column 0*column 1"
    assert found["parameters"]["agent"]["kind"] == "Cats"
    assert len(found["played"][0]["route"]["steps"]) == 6


def test_a_linear_policy_shows_its_weights(tmp_path):
    agent = manul.agents.SmoothedGreedy(policies=manul.policies.Linear(), bandwidth=1 / 16)
    contexts = np.random.default_rng(0).uniform(-1, 1, (10_000, 2))
    manul.simulate(agent, manul.worlds.Regression(contexts, 0.5 - 0.3 * contexts[:, 1]))
    strongest = read(saved(agent, tmp_path / "linear.manul"))["features"][0]
    assert (strongest["name"], strongest["weight"] < 0) == ("column 1", True)


KINDS = {**dict(checks.discover()), **dict(checks.discover_policies())}


@pytest.mark.parametrize("name", [name for name in KINDS if name.endswith(" 0")])
def test_every_kind_that_can_be_saved_can_be_inspected(name, tmp_path):
    made = KINDS[name](0)
    path = saved(made, tmp_path / "a.manul")
    assert manul_inspect(path).stdout.startswith(type(made).__name__)
    found = read(path, "--context", "[0.5, 0.5, 0.5]")
    low, high = found["played"][0]["window"]
    assert made.actions[0] <= low <= high <= made.actions[1]


def test_the_picture_shows_the_margins_on_the_way_down(rows, tmp_path):
    steps = read(rows, "--context", "[0, 1, 0]", "--plot", tmp_path / "out.svg")["played"][0]["route"]["steps"]
    drawn = (tmp_path / "out.csv").read_text()
    assert all(f'"node {step["node"]}, {step["side"]}' in drawn for step in steps)


def test_the_picture_comes_with_its_table(cities, tmp_path):
    result = manul_inspect(cities, "--context", OSLO, "--plot", tmp_path / "out.png")
    assert result.exit_code == 0, result.stderr
    assert (tmp_path / "out.png").stat().st_size > 10_000
    table = (tmp_path / "out.csv").read_text()
    assert "city=Oslo" in table
    assert "density" in table


@pytest.mark.parametrize("context", ["Oslo", "3", '"text"', "{", ""])
def test_a_context_that_is_not_json_is_a_usage_error(cities, context):
    result = manul_inspect(cities, "--context", context)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("--context must be a JSON array or object such as ")
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("context", "start"), [("[1, 2]", "context must be a mapping"), ('{"age": "x"}', "field 'age'")]
)
def test_a_context_that_does_not_fit_is_one_sentence(cities, context, start):
    result = manul_inspect(cities, "--context", context)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith(start)


def test_a_file_that_is_not_there_is_one_sentence(tmp_path):
    result = manul_inspect(tmp_path / "none.manul")
    assert (result.exit_code, result.stderr.count("\n")) == (1, 1)
    assert ": no such file" in result.stderr


def test_a_picture_of_nothing_is_a_usage_error(tmp_path):
    result = manul_inspect(saved(manul.Auto(), tmp_path / "a.manul"), "--plot", tmp_path / "a.png")
    assert result.exit_code == 2
    assert (
        result.stderr
        == "nothing to plot: Auto has no feature weights and no context was given. Pass one, or use --context.\n"
    )


def test_an_agent_that_has_seen_nothing_says_so(tmp_path):
    found = read(saved(manul.Cats(leaves=8, bandwidth=1 / 8), tmp_path / "a.manul"), "--context", "null")
    assert (found["decisions"], found["rounds"], found["features"]) == (0, None, [])
