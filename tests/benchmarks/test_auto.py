"""The promises of Auto are printed beside their limits, and kept."""

import json

import pytest
from benchmarks import auto


def sections(value):
    return {"loss": lambda: iter([auto.Check("loss", value, 0.4)]), "drift": lambda: iter([])}


@pytest.mark.parametrize(("value", "verdict", "code"), [(0.3, "ok  ", 0), (0.5, "MISS", 1)])
def test_a_value_beyond_its_limit_is_a_miss(value, verdict, code, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(auto, "SECTIONS", sections(value))
    assert auto.main(["loss", "--out", str(tmp_path / "auto.json")]) == code
    assert capsys.readouterr().out == f"{verdict} loss: {value} (limit 0.4)\n"


def test_sections_not_asked_for_stay_in_the_file(tmp_path, monkeypatch):
    monkeypatch.setattr(auto, "SECTIONS", sections(0.3))
    file = tmp_path / "auto.json"
    file.write_text('{"speed": []}')
    auto.main(["loss", "--out", str(file)])
    assert json.loads(file.read_text()) == {
        "speed": [],
        "loss": [{"name": "loss", "value": 0.3, "limit": 0.4, "note": "", "ok": True}],
    }


def test_an_unknown_section_is_refused(capsys):
    with pytest.raises(SystemExit, match="2"):
        auto.main(["lose"])
    sentence = (
        "section must be one of loss, hindsight, alarms, drift, gradual, far_valley, rewards, first, speed, got lose."
    )
    assert sentence in capsys.readouterr().err


def test_a_table_without_its_target_is_refused(capsys):
    with pytest.raises(SystemExit, match="2"):
        auto.main(["first", "--table", "shop.csv"])
    assert "--target must be given once per --table, got 0 for 1." in capsys.readouterr().err
