# ruff: noqa: E501 (a row of the table is a line)
"""`kit check --strict`: each way in which a kit is easy to fool is named, and a good kit is clean."""

import json
import shutil
from pathlib import Path

import pytest

from thermite.kit.doubts import doubts
from thermite.kit.manifest import load_kit

ROOT = Path(__file__).parents[2]
SHIPPED = ["kits/demo-cpu", "kits/smoke-cpu", "examples/kit-c", "examples/kit-python"]


@pytest.fixture
def kit(tmp_path: Path) -> Path:
    folder = tmp_path / "kit"
    shutil.copytree(ROOT / "examples/kit-c", folder)
    return folder


def found(folder: Path) -> list[str]:
    return doubts(load_kit(folder), folder)


@pytest.mark.parametrize("name", SHIPPED)
def test_what_we_ship_raises_no_doubt(name: str) -> None:
    assert found(ROOT / name) == []


@pytest.mark.parametrize(
    ("line", "said"),
    [
        pytest.param("pickle.load(file)", "unpickles", id="pickle"),
        pytest.param("x = eval(text)", "evaluates text", id="eval"),
        pytest.param(
            "numpy.load(path, allow_pickle=True)", "allows pickles in an array", id="numpy"
        ),
        pytest.param("torch.load(path)", "uses torch.load without weights_only", id="torch"),
        pytest.param("yaml.load(text)", "loads YAML objects", id="yaml"),
        pytest.param("importlib.import_module(name)", "imports what it is told to", id="import"),
    ],
)
def test_a_loader_that_runs_code_is_named(kit: Path, line: str, said: str) -> None:
    check = kit / "check.py"
    check.write_text(check.read_text() + f"\n{line}\n")
    assert found(kit) == [f"check: check.py {said}: an output can run code as the judge"]


@pytest.mark.parametrize(
    "line",
    [
        "# eval(text) is not for us",
        "torch.load(path, weights_only=True)",
        "model.eval()",
        "retrieval(x)",
    ],
)
def test_what_only_looks_like_a_loader_is_not(kit: Path, line: str) -> None:
    check = kit / "check.py"
    check.write_text(check.read_text() + f"\n{line}\n")
    assert found(kit) == []


def test_a_check_that_prints_what_is_expected_is_named(kit: Path) -> None:
    check = kit / "check.py"
    check.write_text(check.read_text() + '\nreason = f"got {value}, not {expected[at]}"\n')
    assert [one.partition("(")[0] for one in found(kit)] == [
        "check: check.py seems to print what is expected "
    ]


def change(kit: Path, section: str, field: str, value: object) -> None:
    manifest = json.loads((kit / "kit.json").read_text())
    manifest[section][field] = value
    (kit / "kit.json").write_text(json.dumps(manifest))


def test_R10_a_check_that_is_copied_to_runs_is_named(kit: Path) -> None:  # noqa: N802
    change(kit, "run", "copy", ["check.py"])
    assert found(kit) == ["run.copy: check.py is the check, and a candidate can read it there"]


def test_R10_a_file_that_the_check_reads_and_runs_get_is_named(kit: Path) -> None:  # noqa: N802
    (kit / "bench/answers.json").write_text("[]")
    check = kit / "check.py"
    check.write_text(check.read_text() + '\nopen("bench/answers.json")\n')
    assert found(kit) == [
        "build.copy: bench/answers.json is read by the check, and by a candidate there"
    ]


@pytest.mark.parametrize(
    ("path", "said"),
    [
        pytest.param("kit.json", "kit.json tells a candidate the held-out cells", id="R10-cells"),
        pytest.param(
            "candidates/digits/files",
            "candidates/digits/files/sort.c is a known candidate, and any candidate can read it",
            id="R10-an answer",
        ),
    ],
)
@pytest.mark.parametrize("section", ["build", "run"])
def test_what_tells_a_candidate_the_answer_is_named(
    kit: Path, section: str, path: str, said: str
) -> None:
    change(kit, section, "copy", ["bench", path] if section == "build" else [path])
    assert found(kit) == [f"{section}.copy: {said}"]


@pytest.mark.parametrize(
    ("metric", "named"),
    [
        pytest.param({"unit": "ms", "from": "check", "field": "best"}, True, id="R12-unit"),
        pytest.param({"from": "check", "field": "elapsed_ms"}, True, id="R12-field"),
        pytest.param({"from": "check", "field": "accuracy"}, False, id="a true one"),
        pytest.param({"from": "check", "field": "timeliness"}, False, id="another word"),
    ],
)
def test_a_time_that_the_candidate_tells_is_named(
    kit: Path, metric: dict[str, str], *, named: bool
) -> None:
    change(kit, "metrics", "told", metric)
    said = (
        "metrics.told: a time that the check reports can only come from what the candidate wrote:"
        ' use "from": "time"'
    )
    assert found(kit) == ([said] if named else [])


@pytest.mark.parametrize("flag", ["-falign-functions=64 ", "-falign-loops=64 "])
def test_a_compiler_call_without_alignment_is_named(kit: Path, flag: str) -> None:
    script = kit / "bench/build.sh"
    script.write_text(script.read_text().replace(flag, ""))
    assert [one.partition(":")[0] for one in found(kit)] == ["bench/build.sh"]


def test_a_compiler_in_the_build_command_is_seen_too(kit: Path) -> None:
    change(kit, "build", "command", ["/usr/bin/gcc", "-O2", "a.c"])
    assert [one.partition(":")[0] for one in found(kit)] == ["build.command"]


def test_two_equal_cells_are_named(kit: Path) -> None:
    change(kit, "cells", "held", {"seed": 11, "count": 1000000})
    assert found(kit) == ["cells: held is the same as small"]


def test_a_kit_without_a_held_out_cell_is_named(kit: Path) -> None:
    (kit / "candidates/contract.toml").unlink()
    assert found(kit) == [
        "cells: none is held out in candidates/contract.toml, so agents see them all"
    ]


def test_a_kit_without_known_candidates_is_named(kit: Path) -> None:
    shutil.rmtree(kit / "candidates/wrong-tail")
    assert found(kit) == [
        "candidates: none of them is wrong, so nothing shows that the check finds one"
    ]
    shutil.rmtree(kit / "candidates/digits")
    assert len(found(kit)) == 2


LUCKY = (
    "candidates/wrong-tail/expect.toml: not_better without not_confirmed: luck carries a candidate"
    " without a gain through the screen in up to 2 % of tries: add not_confirmed, or the reason where"
    " nothing is timed"
)
INSTEAD = 'verdict = ["invalid"]\nneeds = ["users"]\n[[instead]]\n'


@pytest.mark.parametrize(
    ("text", "is_named"),
    [
        pytest.param('verdict = ["invalid", "not_better"]', True, id="as it is"),
        pytest.param(f'{INSTEAD}verdict = ["not_better"]', True, id="instead"),
        pytest.param('verdict = ["invalid", "not_better", "not_confirmed"]', False, id="both"),
        pytest.param('verdict = ["invalid", "not_better"]\nreason = "x"', False, id="a reason"),
        pytest.param('verdict = ["invalid", "regressed"]', False, id="a loss"),
        pytest.param('verdict = ["invalid", "not_better"]\nagainst = "none"', False, id="alone"),
    ],
)
def test_an_expectation_that_luck_would_break_is_named(
    kit: Path, text: str, is_named: bool
) -> None:
    (kit / "candidates/wrong-tail/expect.toml").write_text(text)
    assert found(kit) == [LUCKY] * is_named


def test_how_often_luck_does_so_is_the_kit_s_own_figure(kit: Path) -> None:
    (kit / "candidates/wrong-tail/expect.toml").write_text('verdict = ["invalid", "not_better"]')
    with (kit / "candidates/contract.toml").open("a") as file:
        file.write("\n[judging]\nscreen_alpha = 0.005\n")
    assert found(kit) == [LUCKY.replace("2 %", "0.5 %")]


def test_a_huge_or_linked_file_is_not_read(kit: Path) -> None:
    (kit / "check.py").unlink()
    (kit / "check.py").symlink_to("/etc/passwd")
    assert found(kit) == []


@pytest.mark.parametrize("place", ["bench", "bench/below"])
def test_a_copied_folder_behind_a_link_is_not_searched(
    kit: Path, place: str, tmp_path: Path
) -> None:
    manifest = json.loads((kit / "kit.json").read_text())
    manifest["build"]["copy"] = [place]
    (kit / "kit.json").write_text(json.dumps(manifest))
    with (kit / "check.py").open("a") as check:
        check.write('KEPT = "answers.bin"\n')
    for top in (kit / "bench", tmp_path / "outside"):
        (top / "below").mkdir(parents=True)
        (top / "below/answers.bin").write_text("1")
    assert [one.partition(" is read")[0] for one in found(kit)] == [
        "build.copy: bench/below/answers.bin"
    ]
    shutil.rmtree(kit / "bench")
    (kit / "bench").symlink_to(tmp_path / "outside")
    assert found(kit) == []


@pytest.mark.parametrize(
    ("line", "tells"),
    [
        pytest.param('say("got " + str(expected))', True, id="str"),
        pytest.param('say("got %s, not %s" % (got, expected))', True, id="percent"),
        pytest.param('say("not %s" % wanted[0])', True, id="percent of one"),
        pytest.param("print(got, expected)", True, id="print"),
        pytest.param('say("{} is it".format(expected))', True, id="format"),
        pytest.param('print(json.dumps({"pass": got == expected}))', False, id="compared"),
        pytest.param("print(len(got))", False, id="its own"),
        pytest.param("unexpected = str(got)", False, id="another word"),
        pytest.param("left = 7 % expected", False, id="a remainder"),
    ],
)
def test_a_check_that_puts_what_it_expects_into_words_is_named(
    kit: Path, line: str, tells: bool
) -> None:
    check = kit / "check.py"
    check.write_text(check.read_text() + f"\n{line}\n")
    assert [one.partition(" (")[0] for one in found(kit)] == (
        ["check: check.py seems to print what is expected"] if tells else []
    )


@pytest.mark.parametrize(
    ("count", "short"),
    [
        pytest.param(10, True, id="nothing"),
        pytest.param(5999, True, id="below the border"),
        pytest.param(6000, False, id="on it"),
        pytest.param(0, False, id="no work is another warning"),
        pytest.param("10", False, id="no number"),
        pytest.param(2**60, True, id="beyond what is divided"),
    ],
)
def test_a_cell_too_short_to_time_is_named_without_running_it(
    kit: Path, count: object, short: bool
) -> None:
    """1,200,000 numbers take at most run.timeout_s of 10 s, so 6,000 at most 50 ms."""
    change(kit, "cells", "tiny", {"seed": 1, "count": count})
    named = {one.split(" ")[1] for one in found(kit) if "too short to time" in one}
    others = {"small", "large", "held"} if count == 2**60 else {"tiny"}
    assert named == (others if short else set())


def test_a_short_cell_is_told_with_its_time_and_once(kit: Path) -> None:
    change(kit, "cells", "tiny", {"seed": 1, "count": 12})
    change(kit, "metrics", "again", {"unit": "1/s", "work": "count"})
    (said,) = found(kit)
    assert said == (
        "cells: tiny is too short to time: if large took all of run.timeout_s (10 s), its count of"
        " 12 would be done in 0.1 ms: make it larger"
    )
