"""Files into an inbox: whole or not at all, readable for the rig, orders last."""

import hashlib
import os
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.control.desk import Rig
from thermite.control.drop import drop_bytes, drop_file
from thermite.control.inbox import drop_files, lying
from thermite.errors import NotFoundError, UnreachableError, UsageError

ROOT = Path(__file__).parents[2]


@pytest.fixture
def umask_077() -> object:
    before = os.umask(0o077)
    yield
    os.umask(before)


@pytest.mark.usefixtures("umask_077")
def test_a_dropped_file_is_readable_whatever_the_umask(rig: Rig, tmp_path: Path) -> None:
    source = tmp_path / "kit.bundle"
    source.write_bytes(b"bundle")
    drop_file(rig.inbox, "kit.bundle", source)
    drop_bytes(rig.inbox, "x.cmd.json", b"order")
    for name in ("kit.bundle", "x.cmd.json"):
        assert stat.S_IMODE((rig.inbox / "new" / name).stat().st_mode) == 0o644
    assert list((rig.inbox / "tmp").iterdir()) == []


def test_a_file_that_lies_there_unreadable_for_the_rig_is_dropped_anew(
    rig: Rig, tmp_path: Path
) -> None:
    """As cp -p and rsync -p leave it under a strict umask; each later order named it in vain."""
    source, lying_there = tmp_path / "kit.bundle", rig.inbox / "new" / "kit.bundle"
    for file in (source, lying_there):
        file.write_bytes(b"bundle")
    lying_there.chmod(0o600)
    drop_file(rig.inbox, "kit.bundle", source)
    assert stat.S_IMODE(lying_there.stat().st_mode) == 0o644


def test_orders_come_last_and_under_random_names(rig: Rig, tmp_path: Path) -> None:
    for name in ("a.cmd.json", "b.bundle", "c.cmd.json"):
        (tmp_path / name).write_text(name, encoding="utf-8")
    names = drop_files(rig.inbox, [tmp_path / n for n in ("a.cmd.json", "b.bundle", "c.cmd.json")])
    assert names[0] == "b.bundle"
    assert len({name.removesuffix(".cmd.json") for name in names[1:]}) == 2
    assert all(len(name) == 32 + len(".cmd.json") for name in names[1:])
    assert [(rig.inbox / "new" / name).read_text(encoding="utf-8") for name in names] == [
        "b.bundle",
        "a.cmd.json",
        "c.cmd.json",
    ]


@pytest.mark.parametrize("name", ["gone.bundle", ".hidden", "big.cmd.json"])
def test_nothing_is_dropped_when_one_of_the_files_can_not_be(
    rig: Rig, tmp_path: Path, name: str
) -> None:
    (tmp_path / "a.bundle").write_bytes(b"a")
    (tmp_path / ".hidden").write_bytes(b"b")
    (tmp_path / "big.cmd.json").write_bytes(b"x" * ((1 << 20) + 1))
    with pytest.raises((NotFoundError, UsageError)):
        drop_files(rig.inbox, [tmp_path / "a.bundle", tmp_path / name])
    assert list((rig.inbox / "new").iterdir()) == []


def test_a_folder_that_is_no_inbox_is_out_of_reach(tmp_path: Path) -> None:
    with pytest.raises(UnreachableError, match="is no inbox"):
        drop_bytes(tmp_path, "x", b"x")
    with pytest.raises(UnreachableError, match="is no inbox"):
        lying(tmp_path)


def test_a_full_disk_is_said_and_leaves_no_half_file() -> None:
    """In a mount namespace of its own, on a file system of 64 KiB."""
    code = (
        "import sys; from pathlib import Path; from thermite.control.drop import drop_bytes;"
        "from thermite.errors import UsageError\n"
        "inbox = Path(sys.argv[1]); (inbox / 'tmp').mkdir(); (inbox / 'new').mkdir()\n"
        "try: drop_bytes(inbox, 'x', b'x' * 1_000_000)\n"
        "except UsageError as error: print(error, list((inbox / 'tmp').iterdir()))"
    )
    with tempfile.TemporaryDirectory() as folder:
        script = f'mount -t tmpfs -o size=64k none {folder} && exec "$0" -c "$1" {folder}'
        done = subprocess.run(
            ["unshare", "--mount", "sh", "-c", script, sys.executable, code],
            check=False,
            capture_output=True,
            text=True,
            env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)},
        )
    if "unshare" in done.stderr or "mount" in done.stderr:
        pytest.skip(f"no file system can be mounted here: {done.stderr.strip()}")
    assert "there is no room left" in done.stdout
    assert done.stdout.rstrip().endswith("[]")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can lay out an inbox of another user")
def test_a_stranger_drops_into_folders_that_he_can_not_list() -> None:
    """As a rig lays them out: new and tmp 1773, so others write and do not list."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        for part in ("tmp", "new"):
            (folder / part).mkdir()
            (folder / part).chmod(0o1773)
        (folder / "done").mkdir(mode=0o700)
        source = folder / "source"
        source.write_bytes(b"bundle")
        source.chmod(0o644)
        code = (
            "import os, sys; from pathlib import Path;"
            "from thermite.control.drop import drop_bytes, drop_file;"
            "from thermite.control.inbox import lying; os.setgid(12346); os.setuid(12346)\n"
            "inbox = Path(sys.argv[1])\n"
            "drop_file(inbox, 'kit.bundle', inbox / 'source')\n"
            "drop_file(inbox, 'kit.bundle', inbox / 'source')\n"
            "drop_bytes(inbox, 'x.cmd.json', b'order')\n"
            "print(lying(inbox)[1])"
        )
        done = subprocess.run(
            [sys.executable, "-c", code, name],
            check=False,
            capture_output=True,
            text=True,
            env={"PYTHONPATH": str(ROOT)},
        )
        assert done.stderr == ""
        assert done.stdout.strip() == "['new', 'done']"
        assert sorted(path.name for path in (folder / "new").iterdir()) == [
            "kit.bundle",
            "x.cmd.json",
        ]


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
def test_an_inbox_that_may_not_be_written_says_what_to_do(rig: Rig) -> None:
    (rig.inbox / "tmp").chmod(0o500)
    with pytest.raises(UnreachableError, match="thermite-drop"):
        drop_bytes(rig.inbox, "x", b"x")


def test_what_lies_in_an_inbox_is_listed(rig: Rig) -> None:
    (rig.inbox / "done").mkdir()
    (rig.inbox / "done" / "b").write_bytes(b"12")
    drop_bytes(rig.inbox, "a", b"1")
    found, closed = lying(rig.inbox)
    assert [(file.folder, file.name, file.size) for file in found] == [
        ("new", "a", 1),
        ("done", "b", 2),
    ]
    assert closed == []


def test_a_large_file_arrives_byte_for_byte(rig: Rig, tmp_path: Path) -> None:
    source = tmp_path / "weights"
    source.write_bytes(os.urandom(3 << 20))
    drop_file(rig.inbox, "weights", source)
    arrived = (rig.inbox / "new" / "weights").read_bytes()
    assert hashlib.sha256(arrived).digest() == hashlib.sha256(source.read_bytes()).digest()


DROP = """
import sys
from pathlib import Path
from thermite.control.drop import drop_file
from thermite.errors import UnreachableError
try:
    drop_file(Path(sys.argv[1]), "kit.bundle", Path(sys.argv[2]))
except UnreachableError as error:
    print(error)
"""


@pytest.mark.skipif(os.getuid() != 0, reason="only root makes a file another user's")
def test_another_users_file_in_the_way_is_said_to_be_one(rig: Rig, tmp_path: Path) -> None:
    """It was answered by advice to join the group that the sender was in."""
    source, in_the_way = tmp_path / "mine", rig.inbox / "new" / "kit.bundle"
    source.write_bytes(b"bundle")
    in_the_way.write_bytes(b"other")
    in_the_way.chmod(0o600)
    for path in (in_the_way, in_the_way.parent):
        os.chown(path, 1001, 1001)
    in_the_way.parent.chmod(0o1777)
    caps = "-dac_override,-dac_read_search,-fowner"
    said = subprocess.run(
        ["setpriv", "--bounding-set", caps, sys.executable, "-c", DROP, rig.inbox, source],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert f"{in_the_way} is another user's" in said.stdout
