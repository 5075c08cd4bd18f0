"""`thermite rig init` and `remove` on a machine of their own: a copy of /etc, mounted over it."""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.namespaced import Namespace, possible
from tests.open_folder import open_folder
from thermite.rig.start import spawner

OVER_ETC = 'mount --bind "$0" /etc && test -e /etc/thermite-copy && exec "$@"'
"""Nothing runs unless the copy lies over the real folder."""


@pytest.fixture
def etc(tmp_path: Path) -> Path:
    if not possible():
        pytest.skip("no mount namespace can be made here: this needs root and CAP_SYS_ADMIN")
    copy = tmp_path / "etc"
    shutil.copytree("/etc", copy, symlinks=True)
    (copy / "thermite-copy").touch()
    return copy


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "rig"


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that every user may enter."""
    with open_folder() as folder:
        yield folder


def thermite(etc: Path, *words: str | Path, code: int = 0) -> dict[str, object]:
    """Run a command there and return what it printed as JSON."""
    argv = ["unshare", "--mount", "sh", "-c", OVER_ETC, str(etc)]
    argv += [sys.executable, "-m", "thermite", *map(str, words), "--json"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    found = json.loads(done.stdout)
    assert isinstance(found, dict)
    return found


def tree(folder: Path) -> dict[str, tuple[int, int, int, bytes]]:
    """Return every file of a folder with its mode, owner and bytes."""
    found = {}
    for path in folder.rglob("*"):
        seen = path.lstat()
        if path.name != ".pwd.lock":
            content = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
            found[str(path)] = (seen.st_mode, seen.st_uid, seen.st_gid, content)
    return found


def test_remove_leaves_the_system_as_it_was_before_init(etc: Path, folder: Path) -> None:
    before, real = tree(etc), Path("/etc/passwd").read_bytes()
    made = thermite(etc, "rig", "init", "--state", folder, "--name", "bench")
    assert (made["made_folder"], made["kept"]) == (True, [])
    assert (folder / "rig.toml").read_text().endswith('name = "bench"\n')
    again = thermite(etc, "rig", "init", "--state", folder)
    assert (again["made_folder"], again["made"], again["kept"]) == (False, [], made["made"])
    said = thermite(etc, "rig", "init", "--state", folder, "--name", "other", code=2)
    assert "names this rig bench, and --name says 'other'" in str(said)
    removed = thermite(etc, "rig", "remove", "--state", folder)
    assert (removed["removed_folder"], removed["removed"]) == (True, made["made"])
    assert tree(etc) == before
    assert not folder.exists()
    assert Path("/etc/passwd").read_bytes() == real
    assert thermite(etc, "rig", "remove", "--state", folder)["removed"] == []


def test_a_folder_that_holds_more_is_kept(etc: Path, folder: Path) -> None:
    thermite(etc, "rig", "init", "--state", folder)
    (folder / "ledger.db").write_bytes(b"facts")
    assert thermite(etc, "rig", "remove", "--state", folder)["removed_folder"] is False
    assert (folder / "ledger.db").read_bytes() == b"facts"


def test_a_folder_that_was_there_before_is_never_removed(etc: Path, folder: Path) -> None:
    folder.mkdir(mode=0o700)
    thermite(etc, "rig", "init", "--state", folder)
    assert thermite(etc, "rig", "remove", "--state", folder)["removed_folder"] is False
    assert list(folder.iterdir()) == []
    assert folder.stat().st_mode & 0o777 == 0o700


def test_a_name_that_somebody_has_is_refused_and_nothing_is_made(etc: Path, folder: Path) -> None:
    with (etc / "passwd").open("a") as passwd:
        passwd.write("run:x:1001:1001:Runa:/home/run:/bin/sh\n")
    before = tree(etc)
    said = thermite(etc, "rig", "init", "--state", folder, code=2)
    assert "not a rig's: run in /etc/passwd" in str(said)
    assert tree(etc) == before
    assert not folder.exists()


def test_a_rig_leases_its_accounts_first(etc: Path, place: Path) -> None:
    thermite(etc, "rig", "init", "--state", place / "rig")
    passwd = [line.split(":") for line in (etc / "passwd").read_text().splitlines()]
    uids = {row[0]: int(row[2]) for row in passwd}
    with Namespace() as ns:
        within = [*ns.prefix, str(shutil.which("sh")), "-c", OVER_ETC, str(etc)]
        with (
            spawner(place / "rig", within=within, run_dir=place / "run", isolation="users") as rig,
            rig.slot("run-0") as slot,
        ):
            assert slot.folder.stat().st_uid == uids["run"]
            leased = {int(path.name) for path in (place / "run" / "uids").iterdir()}
            assert {uids[name] for name in ("reaper", "builder", "check", "worker-0")} <= leased
            assert ns.bystanders() == 3


AS_NOBODY = """
import os
from thermite.cli.rig_init import needs_root
if os.getuid() == 0:
    os.seteuid(65534)
needs_root("init")
"""


def test_a_plain_user_is_told_that_it_needs_none() -> None:
    done = subprocess.run(
        [sys.executable, "-c", AS_NOBODY], capture_output=True, text=True, check=False
    )
    assert "run it as root; a rig that you serve yourself has none" in done.stderr
