"""A ledger lies on a local disk, whatever the mount table looks like."""

from pathlib import Path

import pytest

from tests.requirement import shows
from thermite.ledger.place import filesystem_problem

LOCAL = [("/", "ext4"), ("/home", "xfs"), ("/tmp", "tmpfs")]


@shows("L1")
@pytest.mark.parametrize(
    "kind",
    ["nfs", "nfs4", "cifs", "smb3", "9p", "fuse.sshfs", "fuse", "fuseblk", "afs", "ceph", "vboxsf"],
)
def test_a_network_filesystem_is_refused_by_name(kind: str) -> None:
    problem = filesystem_problem(Path("/srv/rig/ledger.db"), [*LOCAL, ("/srv", kind)])
    assert problem == (
        f"/srv/rig/ledger.db lies on /srv, a filesystem of type {kind}, where SQLite's log is not"
        " safe: put the rig's folder on a local disk, such as /var/lib/thermite"
    )


@shows("L1")
@pytest.mark.parametrize(
    "mounts",
    [
        pytest.param([("/", "ext4")], id="one disk"),
        pytest.param([("/", "nfs"), ("/srv", "ext4")], id="a disk below a network root"),
        pytest.param([("/srv", "nfs"), ("/srv", "ext4")], id="a disk over a network mount"),
        pytest.param([("/", "ext4"), ("/srv/rig2", "nfs")], id="a name that only begins alike"),
        pytest.param([("/", "btrfs"), ("/srv", "overlay")], id="a container"),
        pytest.param([], id="no mount table"),
    ],
)
def test_a_local_disk_is_taken(mounts: list[tuple[str, str]]) -> None:
    assert filesystem_problem(Path("/srv/rig/ledger.db"), mounts) is None


def test_a_link_is_followed(tmp_path: Path) -> None:
    far = tmp_path / "far"
    far.mkdir()
    near = tmp_path / "near"
    near.symlink_to(far)
    mounts = [("/", "ext4"), (str(far), "nfs")]
    assert filesystem_problem(near / "ledger.db", mounts) is not None


def test_this_machine_has_a_mount_table(tmp_path: Path) -> None:
    assert filesystem_problem(tmp_path / "ledger.db") is None
