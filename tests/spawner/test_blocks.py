"""The clock locks of blocks, taken anew for each."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from thermite.errors import InfrastructureError
from thermite.rig.stages import Stages
from thermite.rig.start import spawner


@pytest.fixture
def runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the locks lie, for root and for everybody else."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    return tmp_path / "thermite"


@pytest.fixture
def rig(tmp_path: Path, runtime: Path) -> Iterator[Stages]:
    with spawner(tmp_path / "rig", isolation="none", run_dir=runtime) as stages:
        yield stages


def test_the_folder_of_the_locks_may_be_cleared_away_between_blocks(
    rig: Stages, runtime: Path
) -> None:
    """As what cleans old files out of /tmp does; each later block was refused for ever."""
    for _ in range(2):
        with rig.block():
            assert list(runtime.glob("clock-*.lock"))
        shutil.rmtree(runtime)


@pytest.mark.skipif(os.getuid() != 0, reason="a plain user's locks then lie elsewhere")
def test_a_block_whose_locks_cannot_be_had_is_over(rig: Stages, runtime: Path) -> None:
    shutil.rmtree(runtime)
    runtime.write_text("in the way")
    for _ in range(2):
        with pytest.raises(InfrastructureError, match="no clock lock can be taken"), rig.block():
            pass
    runtime.unlink()
    with rig.block():
        assert list(runtime.glob("clock-*.lock"))
