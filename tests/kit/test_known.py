"""What is wrong with a kit's `candidates/` is named at once, and nothing else is made of it."""

import json
import os
import shutil
from pathlib import Path

import pytest

from thermite.harness.local_job import local_contract
from thermite.kit.doubts import doubts
from thermite.kit.known import MOST_BYTES, filled_in, read_known
from thermite.kit.manifest import load_kit
from thermite.schema.contract import Judging, RepoAt
from thermite.schema.expectation import KnownContract
from thermite.schema.ids import CommitId

ROOT = Path(__file__).parents[2]
LISTS = 'cells = ["small"]\nheld_out_cells = ["held"]\n'


@pytest.fixture
def kit(tmp_path: Path) -> Path:
    folder = tmp_path / "kit"
    shutil.copytree(ROOT / "examples/kit-c", folder)
    return folder


def problems(folder: Path) -> list[str]:
    return read_known(load_kit(folder), folder).problems


@pytest.mark.parametrize(
    ("contract", "said"),
    [
        pytest.param(
            'cells = ["rna"]',
            ["cells names cell rna, which the kit does not have"],
            id="unknown cell",
        ),
        pytest.param(
            'held_out_cells = ["rna"]',
            ["held_out_cells names cell rna, which the kit does not have"],
            id="unknown held-out cell",
        ),
        pytest.param(
            'cells = ["small", "held"]\nheld_out_cells = ["held"]',
            ["held_out_cells names cell held, which cells names too"],
            id="visible and held out",
        ),
        pytest.param(
            LISTS
            + '[objective]\nprimary = {metric = "numbers_per_s"}\nweights = {small = 1, rna = 1}',
            ["objective.weights names cell rna, which is not in cells"],
            id="weight of an unknown cell",
        ),
        pytest.param(
            'cells = ["small", "held", "large"]\nhedl_out_cells = []',
            ["hedl_out_cells: unknown field: did you mean held_out_cells?"],
            id="unknown field",
        ),
        pytest.param(
            LISTS + '[[guards]]\nmetric = "time"\nallowed_loss = -1',
            ["guards[0].allowed_loss: needs a number of at least 0 and below 1, and is -1"],
            id="negative loss",
        ),
        pytest.param(
            LISTS + '[[guards]]\nmetric = "beauty"',
            ["a guard names metric beauty, which the kit does not have"],
            id="unknown metric",
        ),
        pytest.param(
            'held_out_cells = ["small", "large", "held"]',
            ["no cell is left to measure: name one in cells"],
            id="all held out",
        ),
        pytest.param(
            LISTS + "[judging]\nmin_blocks = 9\nmax_blocks = 8",
            ["judging.min_blocks: judging.min_blocks is 9, and judging.max_blocks is 8"],
            id="bounds crossed",
        ),
        pytest.param(
            'cells = ["rna"]\nfoo = 1',
            [
                "foo: unknown field: take it out",
                "cells names cell rna, which the kit does not have",
            ],
            id="both kinds at once",
        ),
    ],
)
def test_what_is_wrong_with_the_candidates_contract_is_named(
    kit: Path, contract: str, said: list[str]
) -> None:
    (kit / "candidates/contract.toml").write_text(contract)
    assert problems(kit) == [f"candidates/contract.toml: {text}" for text in said]


@pytest.mark.parametrize(
    ("expect", "said"),
    [
        pytest.param('verdict = "invalid"', "verdict: needs a list, at least one", id="type"),
        pytest.param('verdict = ["invalidd"]', "verdict[0]: needs promoted", id="verdict"),
        pytest.param('verdict = ["invalid"]\nwhy = 1', "why: unknown field", id="field"),
        pytest.param('verdict = ["invalid"]\nagainst = "x"', "against: x is no other", id="who"),
        pytest.param("verdict = ", "is not valid TOML", id="TOML"),
        pytest.param(
            'verdict = ["invalid"]\nreason = "[[a]"',
            "reason: is no regular expression: Possible nested set",
            id="of which Python warns",
        ),
        pytest.param("#" * (MOST_BYTES + 1), "has more than 65536 bytes", id="endless"),
        pytest.param(None, "missing: say what is expected", id="none"),
    ],
)
def test_what_is_wrong_with_an_expectation_is_named(
    kit: Path, expect: str | None, said: str
) -> None:
    path = kit / "candidates/digits/expect.toml"
    path.unlink() if expect is None else path.write_text(expect)
    (one,) = problems(kit)
    assert one.startswith(f"candidates/digits/expect.toml: {said}")


def test_candidates_that_are_each_other_s_champion_are_named(kit: Path) -> None:
    for name, against in (("digits", "wrong-tail"), ("wrong-tail", "digits")):
        text = f'verdict = ["invalid"]\nagainst = "{against}"\n'
        (kit / "candidates" / name / "expect.toml").write_text(text)
    place = "candidates/{}/expect.toml: against: never comes to base: {}"
    assert problems(kit) == [
        place.format("digits", "digits -> wrong-tail -> digits"),
        place.format("wrong-tail", "wrong-tail -> digits -> wrong-tail"),
    ]


def test_a_missing_base_and_all_else_come_at_once(kit: Path) -> None:
    shutil.rmtree(kit / "candidates/base")
    (kit / "candidates/contract.toml").write_text("foo = 1")
    (kit / "candidates/digits/expect.toml").unlink()
    assert [one.partition(":")[0] for one in problems(kit)] == [
        "candidates/base is missing",
        "candidates/digits/expect.toml",
        "candidates/contract.toml",
    ]


def test_several_metrics_need_an_objective_only_where_candidates_are(kit: Path) -> None:
    manifest = json.loads((kit / "kit.json").read_text())
    manifest["metrics"]["time"] = {"unit": "s", "from": "time"}
    (kit / "kit.json").write_text(json.dumps(manifest))
    assert problems(kit) == ["candidates/contract.toml: the kit has 2 metrics: name the objective"]
    shutil.rmtree(kit / "candidates")
    assert problems(kit) == []


def test_of_a_file_with_problems_nothing_is_doubted(kit: Path) -> None:
    (kit / "candidates/contract.toml").write_text(LISTS + "foo = 1")
    (kit / "candidates/digits/expect.toml").write_text('verdict = ["promotd"]')
    assert doubts(load_kit(kit), kit) == []


def test_more_candidates_than_anybody_tries_are_refused_at_once(kit: Path) -> None:
    for number in range(1001):
        (kit / "candidates" / f"c{number}").mkdir()
    assert problems(kit) == ["candidates holds more than 1000: keep fewer"]


@pytest.mark.parametrize(
    ("linked", "said"),
    [
        pytest.param("candidates", "candidates is a link", id="all of them"),
        pytest.param("candidates/base", "candidates/base is a link", id="base"),
        pytest.param("candidates/digits", "candidates/digits/expect.toml: is a link", id="one"),
        pytest.param(
            "candidates/digits/expect.toml", "candidates/digits/expect.toml: is a link", id="a file"
        ),
        pytest.param("candidates/contract.toml", "candidates/contract.toml is a link", id="rule"),
    ],
)
@pytest.mark.parametrize("to", ["outside", "nowhere"])
def test_no_link_is_followed(kit: Path, linked: str, said: str, to: str, tmp_path: Path) -> None:
    place = kit / linked
    if to == "outside":
        place.rename(tmp_path / "outside")
    elif place.is_dir():
        shutil.rmtree(place)
    else:
        place.unlink()
    place.symlink_to(tmp_path / to)
    if (linked, to) == ("candidates/digits", "nowhere"):
        assert problems(kit) == []  # no folder, so no candidate
        return
    (one,) = problems(kit)
    assert one.startswith(said)


@pytest.mark.parametrize("part", ["change.patch", "delete.txt"])
@pytest.mark.parametrize("kind", ["link", "pipe", "folder"])
def test_a_candidates_change_is_a_plain_file(kit: Path, part: str, kind: str) -> None:
    path = kit / "candidates/digits" / part
    path.unlink(missing_ok=True)
    if kind == "link":
        path.symlink_to("/etc/passwd")
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.mkdir()
    assert f"candidates/digits/{part} is not a plain file" in problems(kit)


@pytest.mark.parametrize(
    ("name", "good"),
    [
        pytest.param("fast-1.2_B", True, id="plain"),
        pytest.param("x" * 128, True, id="longest"),
        pytest.param("x" * 129, False, id="too long"),
        pytest.param("two words", False, id="a blank"),
        pytest.param(".hidden", False, id="a dot first"),
        pytest.param("grün", False, id="no ASCII"),
        pytest.param("a\nb", False, id="a line break"),
        pytest.param("a..b", False, id="no name of a ref"),
        pytest.param("a.lock", False, id="git's own"),
        pytest.param("a.", False, id="a dot last"),
    ],
)
def test_a_candidate_that_kit_test_can_not_name_is_named_with_what_to_do(
    kit: Path, name: str, good: bool
) -> None:
    (kit / "candidates/digits").rename(kit / "candidates" / name)
    if good:
        assert problems(kit) == []
        return
    (one,) = problems(kit)
    assert one.startswith(f"candidates/{ascii(name)[1:-1]}: a candidate's name has")
    assert one.endswith("rename the folder")


@pytest.mark.parametrize("left", ["nothing", "an empty folder", "a blank list", "both"])
def test_a_candidate_that_changes_nothing_is_named(kit: Path, left: str) -> None:
    place = kit / "candidates/digits"
    for part in ("files", "change.patch", "delete.txt"):
        if (place / part).is_dir():
            shutil.rmtree(place / part)
        (place / part).unlink(missing_ok=True)
    if left in {"an empty folder", "both"}:
        (place / "files/src").mkdir(parents=True)
    if left in {"a blank list", "both"}:
        (place / "delete.txt").write_text(" \n")
    assert problems(kit) == [
        "candidates/digits changes nothing: give it a change.patch, or files/ and delete.txt"
    ]


def test_a_folder_without_candidates_is_no_test(kit: Path) -> None:
    for one in (kit / "candidates").iterdir():
        if one.is_dir() and one.name != "base":
            shutil.rmtree(one)
    (kit / "candidates/contract.toml").unlink(missing_ok=True)
    (said,) = problems(kit)
    assert said.startswith("candidates holds no candidate beside base: add a folder for each")


@pytest.mark.parametrize("kind", ["pipe", "folder"])
@pytest.mark.parametrize(
    ("place", "said"),
    [
        pytest.param("contract.toml", "candidates/contract.toml is not a plain file", id="rule"),
        pytest.param(
            "digits/expect.toml",
            "candidates/digits/expect.toml: is not a plain file",
            id="expectation",
        ),
    ],
)
def test_what_is_no_file_is_not_taken_as_absent(
    kit: Path, place: str, said: str, kind: str
) -> None:
    path = kit / "candidates" / place
    path.unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(path)
    else:
        path.mkdir()
    assert problems(kit) == [said]


def test_candidates_and_files_are_folders(kit: Path) -> None:
    shutil.rmtree(kit / "candidates/digits/files", ignore_errors=True)
    (kit / "candidates/digits/files").write_text("x")
    assert problems(kit) == [
        "candidates/digits/files is not a folder: it holds the files that are laid over the tree"
    ]
    shutil.rmtree(kit / "candidates")
    (kit / "candidates").write_text("x")
    assert problems(kit) == ["candidates is no folder: it holds a folder for each"]


def test_who_waits_for_a_verdict_is_not_told_soon_that_the_machine_was_disturbed(kit: Path) -> None:
    """A campaign has other things to do; a contract that says how much goes before both."""
    assert Judging().most_discarded == 0.2
    at = RepoAt(repo="kit", commit=CommitId("0" * 40))
    whole = load_kit(kit)
    fields = filled_in(whole, KnownContract())
    assert local_contract(whole, at, fields).judging.most_discarded == 0.9
    fields = filled_in(whole, KnownContract(judging=Judging(max_discard_share=0.3)))
    assert local_contract(whole, at, fields).judging.most_discarded == 0.3
