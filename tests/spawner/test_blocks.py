"""The clock locks of blocks, taken anew for each."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from thermite.errors import InfrastructureError
from thermite.rig.stages import Stages
from thermite.rig.start import spawner
from thermite.spawner.clock import ClockLocks


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


def test_who_waits_for_a_lock_that_is_cleared_away_waits_for_the_one_made_since(
    tmp_path: Path,
) -> None:
    """Else two rigs timed at once: one had the file that is there, the other the one that was."""
    first, waiter, last = (ClockLocks(lambda: str(tmp_path)) for _ in range(3))

    def tried(locks: ClockLocks) -> bool:
        """Whether it gets the lock at once."""
        return next(locks.take([0], [], lambda: True), None) is None

    assert tried(first)
    waiting = waiter.take([0], [], lambda: True)
    assert next(waiting).deadline is not None
    (tmp_path / "clock-cpu0.lock").unlink()
    assert tried(last)
    first.release()
    assert waiting.send(frozenset()).deadline is not None  # still
    last.release()
    with pytest.raises(StopIteration):
        waiting.send(frozenset())
    assert not tried(first)
    waiter.release()
