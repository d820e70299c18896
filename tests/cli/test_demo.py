import pytest
from click.testing import CliRunner

import manul
from manul.cli import main
from manul.worlds import demonstration


def manul_demo(*arguments):
    return CliRunner().invoke(main, ["demo", *map(str, arguments)])


def test_the_demo_names_the_pictures_it_drew(tmp_path):
    result = manul_demo("--out", tmp_path / "new" / "folder", "--rounds", 300)
    assert result.exit_code == 0
    for name in ("loss.png", "policy.png"):
        assert str(tmp_path / "new" / "folder" / name) in result.stdout
    written = {path.name for path in (tmp_path / "new" / "folder").iterdir()}
    assert written == {"loss.png", "loss.csv", "policy.png", "policy.csv"}


def test_the_progress_bar_stays_out_of_the_standard_output(tmp_path):
    result = manul_demo("--out", tmp_path, "--rounds", 300)
    assert "rounds/s" in result.stderr
    assert "rounds/s" not in result.stdout


def test_the_same_seed_gives_the_same_tables(tmp_path):
    for folder in ("one", "two"):
        demonstration.demonstrate(tmp_path / folder, rounds=500, seed=3)
    for name in ("loss.csv", "policy.csv"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_our_agents_beat_the_best_constant_action(tmp_path):
    auto, cats, _, constant = demonstration.demonstrate(tmp_path, rounds=10_000).results
    assert auto.recent_loss < cats.recent_loss < 0.8 * constant.recent_loss


@pytest.mark.parametrize("place", ["file", "file/below"])
def test_a_folder_that_cannot_be_written_is_one_sentence(tmp_path, place):
    (tmp_path / "file").touch()
    result = manul_demo("--out", tmp_path / place, "--rounds", 10)
    assert result.exit_code == 1
    assert result.stderr.startswith(f"Cannot write to folder {tmp_path / place}: ")
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize("rounds", [-5, 0, 10**12])
def test_an_impossible_number_of_rounds_is_a_usage_error(tmp_path, rounds):
    result = manul_demo("--out", tmp_path, "--rounds", rounds)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == f"--rounds must be a whole number from 1 to 10000000, got {rounds}. Try 100000.\n"


def test_a_negative_seed_is_a_usage_error(tmp_path):
    result = manul_demo("--out", tmp_path, "--seed", -1)
    assert result.exit_code == 2
    assert result.stderr.startswith("--seed must be an integer")


def test_an_interrupt_says_stopped(monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(demonstration, "demonstrate", interrupted)
    result = manul_demo()
    assert (result.exit_code, result.stderr) == (130, "stopped\n")


def test_help_lists_the_commands():
    result = CliRunner().invoke(main, ["--help"])
    assert result.exit_code == 0
    assert "demo" in result.stdout
    assert "Learn to heat a simulated house" in result.stdout


def test_the_version_is_the_package_version():
    assert manul.__version__ in CliRunner().invoke(main, ["--version"]).stdout


def test_an_unknown_command_names_the_closest_one():
    result = CliRunner().invoke(main, ["dmeo"])
    assert result.exit_code == 2
    assert "unknown command 'dmeo'. Did you mean demo?" in result.stderr


def test_an_unknown_command_like_no_other_points_to_the_help():
    assert "See manul --help." in CliRunner().invoke(main, ["zzzzz"]).stderr
