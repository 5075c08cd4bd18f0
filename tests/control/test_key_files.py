"""Keys on disk: 0600 whatever the umask, never overwritten, never read when others can."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.openssh import ssh_keygen
from tests.requirement import shows
from thermite.command.keyring import SigningKey
from thermite.control.home import ControlHome
from thermite.control.key_files import command_key, kept_keys, make_key, public_file, read_key
from thermite.control.private_file import create, replace
from thermite.errors import NotFoundError, UsageError

ROOT = Path(__file__).parents[2]


def never(path: Path) -> bytes:
    raise AssertionError(path)


@pytest.fixture(params=[0o000, 0o022, 0o077, 0o777], ids=oct)
def umask(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[int]:
    """Set one once the test's own folder is made, which even its owner could not enter else."""
    assert tmp_path.is_dir()
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


@shows("K9")
@pytest.mark.usefixtures("umask")
def test_a_key_is_0600_and_its_public_line_readable_whatever_the_umask(tmp_path: Path) -> None:
    path = tmp_path / "me.key"
    public = make_key(path, "me", None)
    assert path.stat().st_mode & 0o7777 == 0o600
    assert public_file(path).stat().st_mode & 0o7777 == 0o644
    assert public_file(path).read_text(encoding="utf-8") == public.line("me") + "\n"
    assert read_key(path, never).public == public


@pytest.mark.usefixtures("umask")
def test_controls_folder_is_0700_whatever_the_umask(tmp_path: Path) -> None:
    home = ControlHome(tmp_path / "control")
    home.make()
    for folder in (home.root, home.keys, home.kits, home.receipts):
        assert folder.stat().st_mode & 0o7777 == 0o700


def test_nothing_is_overwritten_and_a_failed_keygen_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "me.key"
    make_key(path, "me", None)
    before = path.read_bytes()
    with pytest.raises(UsageError, match="is not overwritten"):
        make_key(path, "me", None)
    assert path.read_bytes() == before
    (tmp_path / "you.pub").write_text("mine", encoding="utf-8")
    with pytest.raises(UsageError, match=r"you\.pub exists"):
        make_key(tmp_path / "you.key", "you", None)
    assert not (tmp_path / "you.key").exists()


def test_a_dangling_link_is_not_written_through(tmp_path: Path) -> None:
    (tmp_path / "me.key").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UsageError, match="exists"):
        make_key(tmp_path / "me.key", "me", None)
    with pytest.raises(UsageError, match="exists"):
        create(tmp_path / "me.key", b"x")
    assert not (tmp_path / "elsewhere").exists()


@shows("K9")
@pytest.mark.parametrize("mode", [0o644, 0o640, 0o660, 0o604, 0o777, 0o602])
def test_a_key_that_others_can_touch_is_refused_with_the_remedy(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "me.key"
    make_key(path, "me", None)
    path.chmod(mode)
    with pytest.raises(UsageError, match=f"mode {mode:04o}.*run chmod 600 {path}.*FAT"):
        read_key(path, never)
    path.chmod(0o400)
    read_key(path, never)


@shows("K9")
def test_a_symlinked_key_is_refused_and_says_what_it_points_to(tmp_path: Path) -> None:
    make_key(tmp_path / "me.key", "me", None)
    link = tmp_path / "link.key"
    link.symlink_to("me.key")
    with pytest.raises(UsageError, match=f"symbolic link: name the file.*{tmp_path}/me.key"):
        read_key(link, never)


@shows("K9")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_key_of_another_user_is_refused() -> None:
    folder = Path(tempfile.mkdtemp(dir="/tmp"))
    folder.chmod(0o755)
    path = folder / "me.key"
    make_key(path, "me", None)
    path.chmod(0o644)  # so that the other user gets as far as the check
    code = (
        "import os, sys; from pathlib import Path;"
        "from thermite.control.private_file import read_private; os.setuid(12346);"
        "read_private(Path(sys.argv[1]), most_bytes=9999)"
    )
    try:
        done = subprocess.run(
            [sys.executable, "-c", code, str(path)],
            check=False,
            capture_output=True,
            text=True,
            env={"PYTHONPATH": str(ROOT)},
        )
    finally:
        shutil.rmtree(folder)
    assert f"{path} belongs to user 0 and you are user 12346" in done.stderr


@pytest.mark.parametrize("kind", ["folder", "pipe", "missing", "huge"])
def test_what_is_no_key_file_is_refused_at_once(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "me.key"
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "huge":
        create(path, b"x" * 70_000)
    with pytest.raises(UsageError, match=r"no plain file|there is no file|more than 65536"):
        read_key(path, never)


def test_a_passphrase_is_asked_for_only_when_there_is_one(tmp_path: Path) -> None:
    make_key(tmp_path / "me.key", "me", b"correct horse")
    read_key(tmp_path / "me.key", lambda _: b"correct horse")
    with pytest.raises(UsageError, match="does not open"):
        read_key(tmp_path / "me.key", lambda _: b"wrong")


@shows("K10")
def test_what_is_wrong_with_a_key_file_is_said_with_its_name(tmp_path: Path) -> None:
    path = tmp_path / "me.key"
    create(path, b"thermite-ed25519 AAAA x\n")
    with pytest.raises(UsageError, match=f"{path}: this is a public key"):
        read_key(path, never)


def test_the_only_command_key_is_found_and_others_are_not_guessed(home: ControlHome) -> None:
    with pytest.raises(NotFoundError, match="thermite keygen"):
        command_key(home)
    make_key(home.keys / "root.key", "root", None)
    make_key(home.keys / "anna.key", "Anna", None)
    assert command_key(home) == home.keys / "anna.key"
    make_key(home.keys / "bob.key", "Bob", None)
    with pytest.raises(UsageError, match=r"anna\.key, bob\.key"):
        command_key(home)
    public_file(home.keys / "bob.key").unlink()
    assert [(key.path.name, key.label) for key in kept_keys(home)] == [
        ("anna.key", "Anna"),
        ("bob.key", ""),
        ("root.key", "root"),
    ]


def test_a_public_line_is_told_from_the_key_to_sign_with(tmp_path: Path) -> None:
    make_key(tmp_path / "me.key", "me", None)
    with pytest.raises(UsageError, match=r"me\.pub is a public line, .* private key, as .*me\.key"):
        read_key(tmp_path / "me.pub", never)


def test_replacing_a_file_is_whole_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "x"
    replace(path, b"one")
    replace(path, b"two")
    assert path.read_bytes() == b"two"
    assert [entry.name for entry in tmp_path.iterdir()] == ["x"]
    folder = tmp_path / "folder"
    (folder / "inner").mkdir(parents=True)
    with pytest.raises(OSError, match="directory"):
        replace(folder, b"three")
    assert not [entry for entry in tmp_path.iterdir() if entry.name.startswith(".")]


def test_an_openssh_key_of_ones_own_signs(tmp_path: Path) -> None:
    path = tmp_path / "id_ed25519"
    ssh_keygen(path)
    assert isinstance(read_key(path, never), SigningKey)
