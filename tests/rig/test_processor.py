"""The processor's text changes with its model and its instructions, and with nothing else."""

from pathlib import Path

import pytest

from thermite.rig import processor as module
from thermite.rig.processor import processor, processor_model

OURS = """processor\t: 0
model name\t: A 7 at 3 GHz
cpu MHz\t\t: 2999.1
flags\t\t: fpu avx512f sse

processor\t: 1
model name\t: B
"""


def told(text: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (folder / "cpuinfo").write_text(text)
    monkeypatch.setattr(module, "_CPUINFO", folder / "cpuinfo")
    return processor()


def test_a_processor_is_its_model_and_its_instructions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = told(OURS, tmp_path, monkeypatch)
    assert ours.startswith("A 7 at 3 GHz (instructions ")
    for same in (("2999.1", "800.0"), ("fpu avx512f", "avx512f fpu"), (": B", ": C")):
        assert told(OURS.replace(*same), tmp_path, monkeypatch) == ours
    for other in (("A 7", "A 8"), (" avx512f", "")):
        assert told(OURS.replace(*other), tmp_path, monkeypatch) != ours


def test_a_processor_without_a_name_is_told_by_its_instructions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arm = "processor: 0\nFeatures: fp asimd\nCPU part: 0xd0c\n"
    ours = told(arm, tmp_path, monkeypatch)
    assert ours.startswith("a processor (instructions ")
    assert processor_model() is None
    assert told(arm.replace("0xd0c", "0xd40"), tmp_path, monkeypatch) != ours
    monkeypatch.setattr(module, "_CPUINFO", tmp_path / "nonesuch")
    assert processor().startswith("a processor (instructions ")
