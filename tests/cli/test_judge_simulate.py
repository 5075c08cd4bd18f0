"""`thermite judge simulate` prints one object of figures, the same for the same seed."""

import json
from pathlib import Path
from typing import Any

import pytest

from thermite.cli.judge_simulate import noise_named
from thermite.cli.root import run
from thermite.judge.simulate.peers import peers
from thermite.judge.simulate.recorded import Recording, read_recording
from thermite.shipped import shipped_file

FIELDS = {
    "campaigns",
    "false_champion_campaigns",
    "power",
    "mean_blocks",
    "claim_bias_pp",
    "claimed_gain",
    "true_gain",
}
SMALL = ["--noise", "heavy", "--campaigns", "2", "--attempts", "20"]


def simulated(capsys: pytest.CaptureFixture[str], *argv: str) -> dict[str, dict[str, Any]]:
    assert run(["judge", "simulate", *argv, "--json"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    found: dict[str, dict[str, Any]] = json.loads(out)
    return found


def test_the_rule_stands_beside_the_peers(capsys: pytest.CaptureFixture[str]) -> None:
    found = simulated(capsys, "--rule", "signflip-1", *SMALL)
    assert list(found) == ["signflip-1", *peers()]
    assert all(set(one) == FIELDS for one in found.values())
    ours = found["signflip-1"]
    assert ours["campaigns"] == 2
    assert ours["false_champion_campaigns"] == 0
    assert ours["power"] > 0.8
    assert 5.0 <= ours["mean_blocks"] < 8.0
    assert ours["true_gain"] == pytest.approx(1.02**2 - 1.0)
    assert found["best-single"]["false_champion_campaigns"] == 2


def test_the_same_seed_gives_the_same_object_and_another_does_not(
    capsys: pytest.CaptureFixture[str],
) -> None:
    argv = ["--rule", "best-single", *SMALL, "--seed"]
    first = simulated(capsys, *argv, "7")
    assert list(first) == ["best-single"]
    assert first == simulated(capsys, *argv, "7")
    assert first != simulated(capsys, *argv, "8")


def test_more_cells_are_measured_in_a_block(capsys: pytest.CaptureFixture[str]) -> None:
    small = ["--noise", "loaded", "--campaigns", "1", "--attempts", "3", "--effect", "10"]
    one, three = (simulated(capsys, *small, "--cells", cells)["signflip-2"] for cells in ("1", "3"))
    assert one["mean_blocks"] != three["mean_blocks"]


def test_a_file_of_noise_is_taken(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    noise = tmp_path / "noise.json"
    noise.write_text(json.dumps({"schema_version": 1, "what": "still", "t_ns": [10**7] * 40}))
    argv = ["--noise", str(noise), "--campaigns", "1", "--attempts", "10"]
    found = simulated(capsys, *argv)["signflip-2"]
    # Without noise D is 0 in a null, and the gain itself in an edit that has it.
    assert (found["mean_blocks"], found["power"]) == (5.0, 1.0)
    assert found["claim_bias_pp"] == pytest.approx(0.0, abs=1e-4)


POOLS = sorted((Path(__file__).parents[2] / "noise").glob("*.json"))


@pytest.mark.parametrize("path", POOLS, ids=lambda path: path.stem)
def test_a_pool_that_we_ship_is_a_recording_and_goes_before_a_model(path: Path) -> None:
    assert shipped_file(f"noise/{path.name}") == path
    assert len(read_recording(path.read_bytes()).t_ns) >= 400
    source, what = noise_named(path.stem)
    assert isinstance(source, Recording)
    assert "processors" in what


def test_a_name_without_a_recording_is_a_model() -> None:
    assert noise_named("heavy") == ("heavy", "seeded model")


@pytest.mark.parametrize(
    ("argv", "code", "said"),
    [
        pytest.param(["--effect", "nan"], 2, "'nan' is no number", id="nan"),
        pytest.param(["--effect", "inf"], 2, "'inf' is no number", id="inf"),
        pytest.param(["--min-effect", "0"], 2, "'0' is not above 0 and at most 10", id="no effect"),
        pytest.param(["--cells", "65"], 2, "65 is not from 1 to 64", id="cells"),
        pytest.param(["--rule", "signflip-9"], 2, "'signflip-9' is not one of", id="rule"),
        pytest.param(["--noise", "/nope"], 3, "no noise file '/nope': we ship quiet", id="no file"),
        pytest.param(["--noise", "/"], 1, "is a directory", id="folder"),
        pytest.param(["--noise", __file__], 2, "the noise file", id="no recording"),
        pytest.param(
            ["--attempts", "10000", "--campaigns", "101"], 2, "give --campaigns 100", id="too many"
        ),
    ],
)
def test_what_cannot_be_tried_is_refused_in_one_object(
    argv: list[str], code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["judge", "simulate", *argv, "--json"]) == code
    told = json.loads(capsys.readouterr().out)
    assert told["exit"] == code
    assert said in told["error"]


def test_a_person_reads_a_row_for_each_rule(capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["--noise", "heavy", "--campaigns", "1", "--attempts", "1", "--rule", "paired-t"]
    assert run(["judge", "simulate", *argv, "--quiet"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "heavy (seeded model), seed 1: 1 campaigns of 1 attempts"
    assert [line.split()[0] for line in lines[1 : lines.index("")]] == ["rule", "paired-t"]


def test_a_table_is_not_mixed_with_progress_and_its_columns_are_explained(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["judge", "simulate", "--rule", "best-single", *SMALL]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    _, head, row, empty, *legend = out.splitlines()
    assert empty == ""
    assert row.startswith("best-single ")
    told = {line[:17].strip() for line in legend} - {""}
    assert told == {"false campaigns", "power", "blocks", "bias", "claimed, true"}
    assert all(word in head for name in told for word in name.split(", "))
    assert all(len(line) <= 100 for line in legend)
