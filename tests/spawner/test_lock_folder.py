"""Where a plain user's clock locks lie, and that nobody can be in the way of them."""

import os
import shutil
from pathlib import Path

import pytest

from thermite.errors import InfrastructureError
from thermite.rig.start import spawner

UID = 1_000_000 + os.getpid()
"""Nobody's but this test's, and so is the name of its folder in /tmp."""
TAKEN = Path("/tmp") / f"thermite-{UID}"


def as_nobody(*variables: str) -> list[str]:
    """Return what runs a command as that user, who may read the interpreter wherever it lies."""
    ids = [f"--reuid={UID}", f"--regid={UID}", "--clear-groups"]
    reads = ["--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"]
    return [str(shutil.which("setpriv")), *ids, *reads, "env", "-u", "XDG_RUNTIME_DIR", *variables]


@pytest.mark.skipif(os.getuid() != 0, reason="only root can be two users")
def test_a_name_that_somebody_took_in_tmp_stops_nobodys_rig(place: Path) -> None:
    for name in ("rig", "home"):
        (place / name).mkdir()
        os.chown(place / name, UID, UID)
    TAKEN.mkdir(mode=0o700)
    try:
        within = as_nobody(f"HOME={place / 'home'}")
        with spawner(place / "rig", isolation="none", within=within) as stages, stages.block():
            locks = place / "home/.cache/thermite/locks"
            assert [path.suffix for path in locks.iterdir()] == [".lock"]
        with (
            pytest.raises(InfrastructureError, match="set XDG_RUNTIME_DIR to a folder of yours"),
            spawner(place / "rig", isolation="none", within=as_nobody("HOME=/")),
        ):
            pass
        assert list(TAKEN.iterdir()) == []
    finally:
        TAKEN.rmdir()


@pytest.mark.skipif(os.getuid() != 0, reason="only root can be two users")
@pytest.mark.parametrize("runtime", ["another's", "a file", "nowhere", "relative"])
def test_a_runtime_folder_that_is_not_ones_own_is_passed_over(place: Path, runtime: str) -> None:
    state = place / "rig"
    state.mkdir()
    os.chown(state, UID, UID)
    (place / "another's").mkdir(mode=0o700)
    (place / "a file").touch()
    given = runtime if runtime == "relative" else str(place / runtime)
    within = as_nobody(f"XDG_RUNTIME_DIR={given}", "HOME=/")
    try:
        with spawner(state, isolation="none", within=within) as stages, stages.block():
            assert [path.suffix for path in TAKEN.iterdir()] == [".lock"]
    finally:
        shutil.rmtree(TAKEN)
