"""The shipped kits: legal, honest, and their known candidates are what they are said to be.

Compiled and run here without a rig: what a judge says of them is for other tests.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kits.bench import build, judged, lay_out
from thermite.kit.examine import examine
from thermite.kit.known import (
    known_names,
    read_expectation,
    read_known_contract,
)
from thermite.kit.manifest import load_kit
from thermite.kit.placeholder import expand, params_json, params_text
from thermite.schema.expectation import Expectation, KnownContract

ROOT = Path(__file__).parents[2]
KITS = [pytest.param(ROOT / "kits" / name, id=name) for name in ("demo-cpu", "smoke-cpu")]
CELL = {"demo-cpu": "odd", "smoke-cpu": "small"}
RIGHT = ["base", "07-slower", "09-moved-code", "10-loop-order", "11-blocked"]
MUST_FAIL_FIRST = (
    "broken", "wrong-edge", "forges", "escapes", "hangs", "lingers", "slower", "comment-only",
    "moved-code", "loop-order", "blocked",
)  # fmt: skip


@pytest.mark.parametrize("kit", KITS)
def test_a_shipped_kit_has_neither_problem_nor_warning(kit: Path) -> None:
    found = examine(kit)
    assert (found.problems, found.warnings) == ([], [])


@pytest.mark.parametrize("kit", KITS)
def test_known_candidates_are_all_there_and_those_that_fail_come_first(kit: Path) -> None:
    names = known_names(kit)
    assert [name.partition("-")[2] for name in names] == list(MUST_FAIL_FIRST)
    for name in names:
        raw = (kit / "candidates" / name / "expect.toml").read_bytes()
        assert isinstance(read_expectation(raw, set(names) - {name}), Expectation)
    raw = (kit / "candidates" / "contract.toml").read_bytes()
    contract = read_known_contract(raw)
    assert isinstance(contract, KnownContract)
    assert set(contract.cells or []) | set(contract.held_out_cells) <= set(load_kit(kit).cells)
    assert contract.held_out_cells


@pytest.mark.parametrize("kit", KITS)
def test_work_is_the_number_of_operations_and_runs_have_unequal_cells(kit: Path) -> None:
    cells = load_kit(kit).cells
    for one in cells.values():
        assert one["work"] == 2 * int(one["n"]) ** 3 * int(one["reps"])
    assert len({(one["n"], one["seed"]) for one in cells.values()}) == len(cells)


@pytest.mark.parametrize("kit", KITS)
@pytest.mark.parametrize(
    "name", ["base", "07-slower", "09-moved-code", "10-loop-order", "11-blocked"]
)
def test_a_right_candidate_passes_the_check(kit: Path, name: str, tmp_path: Path) -> None:
    assert build(kit, name, tmp_path / "s").returncode == 0
    assert judged(kit, tmp_path / "s", CELL[kit.name]).get("pass") is True


@pytest.mark.parametrize("kit", KITS)
@pytest.mark.parametrize("name", ["02-wrong-edge", "03-forges"])
def test_a_wrong_candidate_fails_the_check_in_words(kit: Path, name: str, tmp_path: Path) -> None:
    assert build(kit, name, tmp_path / "s").returncode == 0
    found = judged(kit, tmp_path / "s", CELL[kit.name])
    assert found["pass"] is False
    assert "the product is wrong in " in str(found["reasons"])


@pytest.mark.parametrize("kit", KITS)
def test_one_wrong_number_in_one_place_fails_the_check(kit: Path, tmp_path: Path) -> None:
    off = "c[(n - 1) * n + n - 1] += 1;\n}\n"
    for at, change in enumerate((off, off.replace("1;", "0.5;"), off.replace("+= 1", "= 1e300"))):
        source = lay_out(kit, "base", tmp_path / f"s{at}")
        code = (source / "matmul.c").read_text().rstrip().removesuffix("}")
        (source / "matmul.c").write_text(code + change)
        subprocess.run(load_kit(kit).build.command, cwd=source, check=True, timeout=60)
        assert judged(kit, source, CELL[kit.name])["pass"] is False


@pytest.mark.parametrize("kit", KITS)
def test_single_precision_is_not_exact_enough(kit: Path, tmp_path: Path) -> None:
    source = lay_out(kit, "base", tmp_path / "s")
    code = (source / "matmul.c").read_text().replace("double sum", "float sum")
    (source / "matmul.c").write_text(code)
    subprocess.run(load_kit(kit).build.command, cwd=source, check=True, timeout=60)
    assert judged(kit, source, CELL[kit.name])["pass"] is False


@pytest.mark.parametrize("kit", KITS)
def test_another_cell_s_output_does_not_pass(kit: Path, tmp_path: Path) -> None:
    assert build(kit, "11-blocked", tmp_path / "s").returncode == 0
    manifest = load_kit(kit)
    cell = manifest.cells[CELL[kit.name]]
    run = tmp_path / "s" / "run" / "params.txt"
    assert judged(kit, tmp_path / "s", CELL[kit.name])["pass"] is True
    out = run.parent / "out"
    for name, write in (("params.txt", params_text), ("params.json", params_json)):
        (run.parent / name).write_bytes(write({**cell, "seed": 99}))
    places = {"params": run, "params_json": run.parent / "params.json", "out": out, "kit": kit}
    argv = expand(manifest.check.command, places)
    check = subprocess.run([sys.executable, *argv[1:]], capture_output=True, text=True, check=False)
    assert json.loads(check.stdout.splitlines()[-1])["pass"] is False


@pytest.mark.parametrize("kit", KITS)
def test_a_comment_gives_the_same_bytes_and_moved_code_does_not(kit: Path, tmp_path: Path) -> None:
    built = {}
    for name in ("base", "08-comment-only", "09-moved-code"):
        assert build(kit, name, tmp_path / name).returncode == 0
        built[name] = (tmp_path / name / "out/bench").read_bytes()
    assert built["base"] == built["08-comment-only"]
    assert built["base"] != built["09-moved-code"]


@pytest.mark.parametrize("kit", KITS)
def test_the_broken_one_does_not_compile(kit: Path, tmp_path: Path) -> None:
    done = build(kit, "01-broken", tmp_path / "s")
    assert done.returncode == 1
    assert "total" in done.stderr


@pytest.mark.parametrize("kit", KITS)
@pytest.mark.parametrize("name", ["04-escapes", "05-hangs", "06-lingers"])
def test_those_that_misbehave_do_compile(kit: Path, name: str, tmp_path: Path) -> None:
    assert build(kit, name, tmp_path / "s").returncode == 0


def test_an_escape_that_works_is_told_and_wins_nothing(tmp_path: Path) -> None:
    kit = ROOT / "kits" / "demo-cpu"
    assert build(kit, "04-escapes", tmp_path / "stages" / "s").returncode == 0
    run = tmp_path / "stages" / "r"
    (run / "out").mkdir(parents=True)
    (run / "p").write_bytes(params_text(load_kit(kit).cells["odd"]))
    argv = [str(tmp_path / "stages" / "s" / "out/bench"), "p", "out"]
    done = subprocess.run(argv, cwd=run, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr.startswith("a run could ")) == (7, True)
    assert list((run / "out").iterdir()) == []


def test_the_smoke_kit_is_the_reference_page_s_but_for_the_check_s_interpreter() -> None:
    from tests.kit.seed import SEED

    found = json.loads((ROOT / "kits/smoke-cpu/kit.json").read_text())
    assert found.pop("check") == {
        "command": ["python3", "{kit:check.py}", "{params_json}", "{out}"],
        "timeout_s": 60,
    }
    assert found == {name: value for name, value in SEED.items() if name != "check"}
