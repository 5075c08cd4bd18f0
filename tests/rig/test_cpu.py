"""The cpu driver: which values it believes, and its program that does nothing."""

import subprocess
from pathlib import Path

import pytest

from tests.requirement import shows
from thermite.rig.device import cpu
from thermite.rig.outputs import refusal


@pytest.mark.parametrize(
    ("value", "refused"),
    [
        pytest.param(1.0, None, id="plain"),
        pytest.param(0.0, None, id="zero"),
        pytest.param(-1.5, None, id="negative"),
        pytest.param(float("inf"), "gflops is inf, not a finite number", id="infinite"),
        pytest.param(float("nan"), "gflops is nan, not a finite number", id="not a number"),
    ],
)
@shows("K-057")
def test_only_values_that_are_not_finite_are_refused(value: float, refused: str | None) -> None:
    assert cpu.refuse_value("gflops", value) == refused


def test_the_startup_program_is_static_tiny_and_ends_with_0(tmp_path: Path) -> None:
    program = tmp_path / "startup"
    program.write_bytes(cpu.startup_program())
    program.chmod(0o755)
    done = subprocess.run([program], capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert len(cpu.startup_program()) < 200


def test_every_refusal_of_the_collector_has_words() -> None:
    from thermite.rig.start import FOLDER

    text = (FOLDER / "collector.py").read_text()
    for kind in ("link", "pipe", "socket", "device", "kind", "hard_link", "owner", "bytes"):
        assert f'"{kind}"' in text
        assert "out/a" in refusal("out/a", kind, 2)
    assert refusal("", "entries", 7) == "more than 7 files and folders"
    assert refusal("out/a", "levels", 32) == "out/a is nested deeper than 32 levels"
