"""The cpu driver's program that does nothing, and words for what is refused."""

import subprocess
from pathlib import Path

from thermite.rig.device import cpu
from thermite.rig.refusal_words import refusal


def test_the_startup_program_is_static_tiny_and_ends_with_0(tmp_path: Path) -> None:
    program = tmp_path / "startup"
    program.write_bytes(cpu.startup_program())
    program.chmod(0o755)
    done = subprocess.run([program], capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert len(cpu.startup_program()) < 200


def test_every_refusal_of_the_collector_has_words() -> None:
    from thermite.rig.start import FOLDER

    text = (FOLDER / "outputs.py").read_text()
    for kind in ("link", "pipe", "socket", "device", "kind", "hard_link", "owner", "bytes"):
        assert f'"{kind}"' in text
        assert "out/a" in refusal("out/a", kind, 2)
    assert refusal("", "entries", 7) == "more than 7 files and folders"
    assert refusal("out/a", "levels", 32) == "out/a is nested deeper than 32 levels"
