"""The toolchain's text changes with the compilers and the image, and with nothing else."""

import os
from pathlib import Path

import pytest

from tests.requirement import shows
from thermite.rig.toolchain import toolchain


def _compiler(folder: Path, name: str, says: str) -> str:
    path = folder / name
    path.write_text(f'#!/bin/sh\n[ "$1" = --version ] && {says}\n')
    path.chmod(0o755)
    return str(folder)


@shows("K-171")
def test_versions_are_the_stage_paths_own(tmp_path: Path) -> None:
    path = _compiler(tmp_path, "cc", "echo 'cc 1.2.3'; echo free")
    _compiler(tmp_path, "nvcc", "echo 'nvcc 9'")
    assert toolchain(path) == "cc cc 1.2.3 free; nvcc nvcc 9"


def test_a_missing_or_broken_compiler_is_told(tmp_path: Path) -> None:
    path = _compiler(tmp_path, "cc", "exit 3")
    assert toolchain(path).startswith("cc unknown; nvcc ")
    assert toolchain(str(tmp_path / "none")).startswith("cc none; ")


@shows("K-171")
def test_the_image_counts_only_when_it_has_a_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("THERMITE_IMAGE_ID", "")
    without = toolchain(str(tmp_path))
    monkeypatch.delenv("THERMITE_IMAGE_ID")
    assert toolchain(str(tmp_path)) == without
    monkeypatch.setenv("THERMITE_IMAGE_ID", "sha256:1")
    assert toolchain(str(tmp_path)) == f"{without}; image sha256:1"
    assert os.environ["THERMITE_IMAGE_ID"] == "sha256:1"
