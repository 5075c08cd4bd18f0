# ruff: noqa: E501 (a row of the table is a line)
"""A kit's folder as `kit check` sees it (D17, D18, K-107, K-108)."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.kit.seed import GONE, bent
from tests.requirement import shows
from thermite.kit.doubts import doubts
from thermite.kit.examine import examine


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "bench").mkdir()
    (tmp_path / "bench/build.sh").write_text("")
    (tmp_path / "check.mjs").write_text("")
    return tmp_path


def write(folder: Path, *changes: tuple[str, object]) -> None:
    (folder / "kit.json").write_text(json.dumps(bent(*changes)))


def test_a_whole_kit_has_neither_problem_nor_warning(folder: Path) -> None:
    write(folder)
    found = examine(folder)
    assert (found.problems, found.warnings) == ([], [])
    assert found.kit is not None


@pytest.mark.parametrize("field", ["run", "build"])
@shows("K-107", "K-108")
def test_D18_files_that_can_t_be_copied_are_problems(folder: Path, field: str) -> None:  # noqa: N802
    (folder / "to").symlink_to("bench")
    (folder / "bench/link").symlink_to("build.sh")
    os.mkfifo(folder / "bench/pipe")
    write(folder, (f"{field}/copy", ["bench", "nothing", "to", "to/build.sh", "check.mjs"]))
    other = [] if field == "build" else [
        "kit build.copy: not a regular file or directory: bench/link",
        "kit build.copy: not a regular file or directory: bench/pipe",
    ]  # fmt: skip
    assert examine(folder).problems == [
        *other,
        f"kit {field}.copy: not a regular file or directory: bench/link",
        f"kit {field}.copy: not a regular file or directory: bench/pipe",
        f"kit {field}.copy: nothing is not in the kit",
        f"kit {field}.copy: not a regular file or directory: to",
        f"kit {field}.copy: not a regular file or directory: to/build.sh",
    ]


def test_a_folder_of_its_own_below_itself_is_no_endless_walk(folder: Path) -> None:
    (folder / "bench/again").symlink_to("..")
    write(folder)
    assert examine(folder).problems == [
        "kit build.copy: not a regular file or directory: bench/again"
    ]


def test_problems_of_the_manifest_come_before_files_are_looked_at(folder: Path) -> None:
    write(folder, ("name", "A"), ("build/copy", ["nothing"]))
    assert [one.partition(":")[0] for one in examine(folder).problems] == ["name"]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        pytest.param([("target", "rocm-gpu")], ["target: this version has no driver for rocm-gpu, only for cpu and cuda-gpu"], id="D17-target"),
        pytest.param([("cells", {})], ["cells: there are none, so there is nothing to measure"], id="D17-no-cells"),
        pytest.param([("run/command", ["{build}", "{foo:x}", "{Out}"])], ["run.command[1]: unknown placeholder {foo}"], id="D17-unknown-placeholder"),
        pytest.param([("check/command", ["a", "{out:../x}"])], ["check.command[1]: placeholder {out:../x} leaves its folder"], id="D17-leaves"),
        pytest.param([("build/outputs", ["out", "lib/a.so"]), ("run/command", ["{build}", "{build:out/x}", "{build:lib}", "{build:lib/b.so}"])], ["run.command[3]: {build:lib/b.so} is not among what the build keeps (out, lib/a.so)"], id="D17-not-an-output"),
        pytest.param([("run/command", ["sleep", "1"])], ["run.command: no {build} in it, so every candidate runs the same"], id="D17-without-build"),
        pytest.param([("metrics/t", {"from": "time", "unit": "ms"})], ["metrics.t.unit: a time is in s, whatever its unit says ('ms')"], id="D17-unit"),
        pytest.param([("cells/held/work", GONE)], ["metrics.flops_per_s.work: cell held has no work"], id="D17-no-work"),
        pytest.param([("cells/held/work", 0)], ["metrics.flops_per_s.work: cell held has no usable (0) work"], id="D17-work-0"),
        pytest.param([("cells/held/work", "7")], ["metrics.flops_per_s.work: cell held has no usable ('7') work"], id="D17-work-text"),
        pytest.param([("cells/held/work", True)], ["metrics.flops_per_s.work: cell held has no usable (True) work"], id="D17-work-true"),
    ],
)  # fmt: skip
def test_what_is_legal_and_hardly_meant_is_a_warning(
    folder: Path, changes: list[tuple[str, Any]], said: list[str]
) -> None:
    write(folder, *changes)
    found = examine(folder)
    assert (found.problems, found.warnings) == ([], said)


def test_a_check_that_is_not_in_the_kit_is_a_problem(folder: Path) -> None:
    write(folder, ("check/command", ["a", "{kit:gone.py}"]))
    assert examine(folder).problems == ["check.command: {kit:gone.py} is not in the kit"]


def test_G7_a_file_that_only_points_to_its_content_is_named(folder: Path) -> None:  # noqa: N802
    write(folder)
    (folder / "bench/data.bin").write_text(
        f"version https://git-lfs.github.com/spec/v1\noid sha256:{'a' * 64}\nsize 12582912\n"
    )
    (folder / "bench/notes").write_text(
        "version https://git-lfs.github.com/spec/v1\nis the first line\n"
    )
    assert examine(folder).warnings == [
        (
            "bench/data.bin is an LFS pointer (12.0 MiB are elsewhere): no judge fetches them;"
            " large files are for the contract's models"
        )
    ]


@shows("D17")
def test_cells_without_work_are_counted_once_enough_are_named(folder: Path) -> None:
    """3,000 cells and 3,000 rates, which fit into a kit.json, were nine million warnings."""
    write(folder, ("cells", {f"c{number}": {} for number in range(50)}), ("verifiers", {}))
    found = [text for text in examine(folder).warnings if ".work: " in text]
    per_metric = [text for text in found if text.startswith("metrics.flops_per_s.work")]
    assert len(per_metric) == 21
    assert per_metric[19] == "metrics.flops_per_s.work: cell c19 has no work"
    assert per_metric[20] == "metrics.flops_per_s.work: so have 30 cells more"


def nest(top: Path, levels: int) -> None:
    """Nest folders deeper than any path can name."""
    here = os.open(top, os.O_RDONLY)
    for _ in range(levels):
        os.mkdir("d", dir_fd=here)
        below = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)


@pytest.mark.parametrize("where", [".", "bench"])
def test_folders_without_end_are_no_traceback_and_not_copied(folder: Path, where: str) -> None:
    nest(folder / where, 1200)
    write(folder, ("run/copy", ["bench"]), ("build/copy", []))
    try:
        found = examine(folder)
        assert found.kit is not None
        doubtful = list(doubts(found.kit, folder))
    finally:  # the test's own cleaning would nest as deep
        subprocess.run(["rm", "-rf", folder / where / "d"], check=True)
    said = ["kit run.copy: folders nest 128 deep or more in bench"]
    assert found.problems == (said if where == "bench" else [])
    assert any("candidates" in text for text in doubtful)
