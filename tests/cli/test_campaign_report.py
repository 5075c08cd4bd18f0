"""`thermite campaign report`, `campaign compare` and `show`, on a ledger that was carried away."""

import json
import os
from pathlib import Path

import pytest

from thermite.cli.root import run

LEDGER = str(Path(__file__).parents[1] / "golden/promotion/ledger.db")
OTHER = str(Path(__file__).parents[1] / "golden/ledger/ledger.db")
REPORT = ["campaign", "report", "--ledger", LEDGER]


def test_a_report_is_written_in_the_form_that_the_name_asks_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, begins in (("r.html", "<!doctype html>"), ("r.md", "# walk"), ("r.txt", "walk\n")):
        assert run([*REPORT, "-o", str(tmp_path / name)]) == 0
        assert (tmp_path / name).read_text(encoding="utf-8").startswith(begins)
    assert run([*REPORT, "--form", "markdown"]) == 0
    assert "## Attempts" in capsys.readouterr().out
    assert run([*REPORT, "5555", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["name"], told["verdicts"]) == ("walk", {"promoted": 1, "not_better": 1})


@pytest.mark.parametrize("name", ["r.pdf", "r.HTLM", "r.tar.gz"])
def test_an_ending_that_asks_for_no_form_is_refused_before_anything_is_written(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / name
    assert run([*REPORT, "-o", str(target)]) == 2
    said = capsys.readouterr().err
    assert f"as {target.suffix.lower()}: end FILE's name with .html, .htm, .md, .markdown" in said
    assert not target.exists()
    assert run([*REPORT, "-o", str(target), "--form", "text"]) == 0
    assert target.read_text(encoding="utf-8").startswith("walk\n")


def test_a_report_replaces_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine.html").write_text("mine")
    (tmp_path / "link.html").symlink_to(tmp_path / "gone")
    os.mkfifo(tmp_path / "pipe.html")
    for name in ("mine.html", "link.html", "pipe.html"):
        assert run([*REPORT, "-o", str(tmp_path / name)]) == 5
        assert "is there already: name a new file" in capsys.readouterr().err
    assert (tmp_path / "mine.html").read_text() == "mine"
    assert not (tmp_path / "gone").exists()
    assert run([*REPORT, "-o", str(tmp_path / "no" / "r.html")]) == 1
    assert "No such file" in capsys.readouterr().err


def test_a_campaign_that_is_not_there_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*REPORT, "77"]) == 3
    assert "there is no campaign 77" in capsys.readouterr().err


def test_two_campaigns_stand_beside_each_other(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["campaign", "compare", LEDGER, f"{LEDGER}#5555"]) == 0
    assert "no difference was shown: the intervals meet" in capsys.readouterr().out
    assert run(["campaign", "compare", "55", "5", "--ledger", LEDGER, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["said"].startswith("no difference")
    assert run(["campaign", "compare", LEDGER, OTHER]) == 0
    shown = capsys.readouterr()
    assert "cannot be compared" in shown.out
    assert "warning: different kits" in shown.err
    assert run(["campaign", "compare", LEDGER, "nowhere#1"]) == 3
    assert run(["campaign", "compare", LEDGER, "55"]) == 2


@pytest.mark.parametrize("attempt", ["1", "01-fast", "01", "a6165b019d1b"])
def test_an_attempt_is_shown_whole(attempt: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["show", attempt, "--ledger", LEDGER]) == 0
    said = capsys.readouterr().out
    assert "attempt 1 (01-fast)" in said
    assert "16 blocks counted, 1 try\n" in said
    assert (
        "last decision: confirm pass, ln E 6.92: luck alone gets so far at most once in 1," in said
    )
    assert "block by block, and leaves out the extremes" in said
    assert "files: program.json" in said
    assert run(["show", attempt, "--ledger", LEDGER, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["attempt"], told["verdict"], told["decision"]["stage"]) == (
        1,
        "promoted",
        "confirm",
    )


def test_an_attempt_that_is_not_there_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    for wanted in ("3", "a6165", "x" * 5000):
        assert run(["show", wanted, "--ledger", LEDGER]) == 3
        assert len(capsys.readouterr().err) < 250
    assert run(["show", "0", "--ledger", LEDGER]) == 3
    assert "there is more than one attempt '0'" in capsys.readouterr().err
