"""`thermite rig access`: what is refused, and that nothing of a secret is ever repeated."""

import base64
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tests.cli.operator_desk import Desk
from thermite.errors import UsageError
from thermite.rig.access import MOST_ENTRIES, accesses, remove_access, set_access
from thermite.schema.access import MOST_BYTES, Access

KEY = "-----BEGIN OPENSSH PRIVATE KEY-----\ncanary\n-----END OPENSSH PRIVATE KEY-----\n"
PEM = serialization.Encoding.PEM
SIGNING = Ed25519PrivateKey.generate()


def certificate() -> str:
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "a.example")])
    begin = datetime(2026, 1, 31, tzinfo=UTC)
    made = x509.CertificateBuilder(name, name, SIGNING.public_key(), 1)
    made = made.not_valid_before(begin).not_valid_after(begin + timedelta(days=1))
    signed = made.sign(SIGNING, None)
    return signed.public_bytes(PEM).decode()


CERTIFICATE = certificate()


@pytest.fixture
def rig(tmp_path: Path) -> Path:
    (tmp_path / "rig").mkdir()
    return tmp_path / "rig"


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    return Desk(tmp_path_factory.mktemp("bare") / "desk")


def test_a_secret_comes_from_standard_input_and_can_be_replaced_and_removed(
    bare: Desk, rig: Path
) -> None:
    given = ("rig", "access", "set", "work", "--state", str(rig), "--for", "ssh://git@a.example")
    first = bare.run(*given, stdin=KEY.replace("\n", "\r\n"))
    assert first.stdout == "set access work  key for ssh://git@a.example\n"
    assert bare.run(*given, "--key-command").stdout == (
        "replaced access work  key for ssh://git@a.example, from key_command\n"
    )
    listed = bare.run("rig", "access", "--state", str(rig))
    assert listed.stdout == "work  key for ssh://git@a.example, from key_command\n"
    kept = rig / "access" / "work.json"
    assert kept.stat().st_mode & 0o777 == 0o600
    assert kept.parent.stat().st_mode & 0o777 == 0o700
    assert bare.told("rig", "access", "remove", "work", "--state", str(rig)) == {"name": "work"}
    gone = bare.run("rig", "access", "remove", "work", "--state", str(rig))
    assert gone.returncode == 3
    assert "this rig has no access work: it has none" in gone.stderr
    assert bare.run("rig", "access", "--state", str(rig)).stdout.startswith("no access is set")


@pytest.mark.parametrize(
    ("name", "place", "secret", "says"),
    [
        pytest.param("../x", "https://a.example", "canary", "no name for an access", id="name"),
        pytest.param("w", "http://a.example", "canary", "--for needs", id="http"),
        pytest.param("w", "a.example", "canary", "--for needs", id="no scheme"),
        pytest.param("w", "https://u:canary@a.example", "x", "before the @", id="password"),
        pytest.param("w", "https://canary@a.example", "x", "before the @", id="token"),
        pytest.param("w", "http://canary@a.example", "x", "before the @", id="http and token"),
        pytest.param("w", "ssh://u:canary@a.example", KEY, "before the @", id="ssh and password"),
        pytest.param("w", "git@a.example:team", "canary", "is a private key", id="scp form"),
        pytest.param("w", "https://a.example/..", "canary", "--for needs", id="a way up"),
        pytest.param("w", "https://a.example", "", "1 to 65536 characters", id="empty"),
        pytest.param("w", "https://a.example", "canary\nb", "one line", id="two lines"),
        pytest.param("w", "https://a.example", "canary\x1b", "one line", id="escape"),
        pytest.param("w", "https://a.example", "canary" * 20000, "1 to 65536", id="long"),
        pytest.param("w", "ssh://git@a.example", "canary", "is a private key", id="no key"),
    ],
)
def test_what_can_never_be_used_is_refused_in_words(
    bare: Desk, rig: Path, name: str, place: str, secret: str, says: str
) -> None:
    given = ("rig", "access", "set", name, "--state", str(rig), "--for", place)
    done = bare.run(*given, stdin=secret)
    assert done.returncode == 2
    assert says in done.stderr
    assert "canary" not in done.stderr + done.stdout
    assert not list(rig.glob("access/*"))


@pytest.mark.parametrize("place", ["https://canary@a.example", "https://u:canary@a.example/x"])
def test_settings_take_no_address_with_credentials(bare: Desk, place: str) -> None:
    done = bare.run("settings", "access", "add", "w", "--for", place)
    assert done.returncode == 2
    assert "before the @" in done.stderr
    assert "canary" not in done.stderr + done.stdout


def test_the_form_of_scp_is_an_ssh_address(bare: Desk, rig: Path) -> None:
    given = ("rig", "access", "set", "w", "--state", str(rig), "--for", "git@a.example:team")
    assert bare.run(*given, stdin=KEY).stdout == "set access w  key for git@a.example:team\n"


ODD: dict[str, Callable[[Path], object]] = {
    "pipe": os.mkfifo,
    "link to /dev/zero": lambda path: path.symlink_to("/dev/zero"),
    "link that leads nowhere": lambda path: path.symlink_to("nowhere"),
    "link to another access": lambda path: path.symlink_to("good.json"),
    "folder": lambda path: path.mkdir(),
    "socket": lambda path: os.mknod(path, stat.S_IFSOCK | 0o600),
    "empty": lambda path: path.touch(0o600),
    "loose": lambda path: path.touch(0o644),
    "long": lambda path: os.truncate(_private(path, b""), MOST_BYTES * 2),
    "deep": lambda path: _private(path, b"[" * 100_000),
    "no UTF-8": lambda path: _private(path, b'{"place":"\xff"}'),
}


def _private(path: Path, raw: bytes) -> Path:
    path.touch(0o600)
    path.write_bytes(raw)
    return path


@pytest.mark.parametrize("kind", ODD)
def test_an_odd_entry_spoils_only_its_own_line(rig: Path, kind: str) -> None:
    """Nothing waits, follows or reads without end; `set` and `remove` put it right."""
    good = Access(place="https://a.example", secret="canary")
    assert not set_access(rig, "good", good)
    ODD[kind](rig / "access" / "odd.json")
    for name in (".odd.json.tmp", "no-access.txt", "UPPER.json"):
        (rig / "access" / name).write_text("canary")
    found = accesses(rig)
    assert list(found) == ["good", "odd"]
    assert isinstance(found["good"], Access)
    assert isinstance(found["odd"], str)
    assert "canary" not in found["odd"]
    if kind == "folder":
        with pytest.raises(UsageError, match="can't be replaced"):
            set_access(rig, "odd", good)
        with pytest.raises(UsageError, match="can't be removed"):
            remove_access(rig, "odd")
        return
    assert set_access(rig, "odd", good)
    assert isinstance(accesses(rig)["good"], Access)
    assert isinstance(accesses(rig)["odd"], Access)
    remove_access(rig, "odd")
    assert list(accesses(rig)) == ["good"]
    assert not [path for path in (rig / "access").iterdir() if path.name.startswith(".odd.json.?")]


def test_more_entries_than_anybody_makes_are_not_all_read(rig: Path) -> None:
    (rig / "access").mkdir()
    for at in range(MOST_ENTRIES + 1):
        (rig / "access" / f"a{at}.json").touch()
    with pytest.raises(UsageError, match="more than 1000 entries"):
        accesses(rig)


@pytest.mark.parametrize("target", ["elsewhere", "nowhere", "/dev/zero"])
def test_a_link_in_place_of_the_folder_takes_no_secret_elsewhere(
    bare: Desk, rig: Path, target: str
) -> None:
    elsewhere = rig.parent / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "w.json").write_text("{}")
    (rig / "access").symlink_to(target if target.startswith("/") else rig.parent / target)
    given = ("--state", str(rig))
    for words in (("set", "w", "--for", "https://a.example"), ("list",), ("remove", "w")):
        done = bare.run("rig", "access", *words, *given, stdin="canary")
        assert done.returncode == 2, words
        assert "is no folder, or a link to one" in done.stderr
    assert [path.name for path in elsewhere.iterdir()] == ["w.json"]
    assert (elsewhere / "w.json").read_text() == "{}"


PUBLIC = "AAAAC3NzaC1lZDI1NTE5" + "A" * 48  # begins with its own type, as every ssh key
HOST = f"a.example ssh-ed25519 {PUBLIC}\n"
SSH, HTTPS = "ssh://git@a.example", "https://a.example"


@pytest.mark.parametrize(
    ("place", "trusted", "says"),
    [
        pytest.param(SSH, f"# mine\n\n{HOST}@revoked * ssh-ed25519 {PUBLIC} x\n", None, id="hosts"),
        pytest.param(SSH, "", "it has none", id="no hosts"),
        pytest.param(SSH, HOST + "canary\n", "its line 2 is none", id="a line of another kind"),
        pytest.param(SSH, f"a ssh-rsa {PUBLIC}", "its line 1 is none", id="another kind of key"),
        pytest.param(SSH, CERTIFICATE, "its line 1 is none", id="certificates for ssh"),
        pytest.param(HTTPS, CERTIFICATE, None, id="certificate"),
        pytest.param(HTTPS, HOST, "can't be read as such", id="hosts for https"),
        pytest.param(HTTPS, "", "can't be read as such", id="no certificates"),
        pytest.param(HTTPS, CERTIFICATE.replace("M", "N"), "as such", id="a spoilt certificate"),
        pytest.param(HTTPS, CERTIFICATE + KEY, "holds a private key", id="a key in it"),
    ],
)
def test_what_servers_are_trusted_by_is_looked_at(
    rig: Path, place: str, trusted: str, says: str | None
) -> None:
    access = Access(place=place, secret=KEY if place == SSH else "canary", trusted=trusted)
    if says is None:
        set_access(rig, "w", access)
        return
    with pytest.raises(UsageError, match=says) as told:
        set_access(rig, "w", access)
    assert "canary" not in str(told.value)
    assert not (rig / "access").exists()


@pytest.mark.parametrize(
    ("given", "says"),
    [
        pytest.param(("--for", SSH, "--user", "me"), "ssh://USER@host", id="a user for ssh"),
        pytest.param(("--for", HTTPS, "--user", "a b"), "without blanks", id="a user with blanks"),
        pytest.param(("--for", HTTPS, "--trusted", "-"), "needs a file", id="trusted from stdin"),
        pytest.param(("--for", HTTPS, "--trusted", "gone"), "can't be read", id="no such file"),
        pytest.param(("--for", HTTPS, "--trusted", "/dev/zero"), "more than", id="no end"),
        pytest.param(("--for", HTTPS, "--trusted", "/"), "is a directory", id="a folder"),
        pytest.param(("--for", HTTPS, "--secret", "/dev/zero"), "more than", id="endless secret"),
    ],
)
def test_options_are_looked_at_before_the_secret_is_kept(
    bare: Desk, rig: Path, given: tuple[str, ...], says: str
) -> None:
    done = bare.run("rig", "access", "set", "w", "--state", str(rig), *given, stdin="canary")
    assert done.returncode == 2
    assert says in done.stderr
    assert not (rig / "access").exists()


def test_a_key_with_a_passphrase_is_no_secret_that_a_rig_could_use(
    bare: Desk, rig: Path, tmp_path: Path
) -> None:
    form = serialization.PrivateFormat
    plain = SIGNING.private_bytes(PEM, form.OpenSSH, serialization.NoEncryption())
    sealed = serialization.BestAvailableEncryption(b"canary")
    packed = base64.b64decode(b"".join(plain.splitlines()[1:-1]))
    packed = packed.replace(b"\0\0\0\4none", b"\0\0\0\x0aaes256-ctr", 1)
    begin, end = plain.splitlines()[0], plain.splitlines()[-1]
    for number, key in enumerate(
        (
            SIGNING.private_bytes(PEM, form.PKCS8, sealed),
            b"\n".join((begin, base64.b64encode(packed), end)),
            plain,
        )
    ):
        file = tmp_path / f"{number}.key"
        file.touch(0o600)
        file.write_bytes(key)
        given = ("rig", "access", "set", "w", "--state", str(rig), "--for", SSH)
        done = bare.run(*given, "--secret", str(file))
        if key == plain:
            assert done.returncode == 0
        else:
            assert (done.returncode, "has a passphrase" in done.stderr) == (2, True)


SET = ("rig", "access", "set", "w", "--for", HTTPS)


def given_as_a_file(bare: Desk, rig: Path, file: Path) -> tuple[int, str]:
    done = bare.run(*SET, "--state", str(rig), "--secret", str(file))
    return done.returncode, done.stderr


def given_as_standard_input(bare: Desk, rig: Path, file: Path) -> tuple[int, str]:
    argv = [sys.executable, "-m", "thermite", *SET, "--state", str(rig)]
    with file.open() as opened:
        done = subprocess.run(
            argv, stdin=opened, env=bare.env, capture_output=True, text=True, check=False
        )
    return done.returncode, done.stderr


@pytest.mark.parametrize("give", [given_as_a_file, given_as_standard_input])
@pytest.mark.parametrize("mode", [0o644, 0o640, 0o602, 0o600, 0o400])
def test_a_file_with_a_secret_that_others_may_read_is_refused_as_a_key_is(
    bare: Desk,
    rig: Path,
    tmp_path: Path,
    give: Callable[[Desk, Path, Path], tuple[int, str]],
    mode: int,
) -> None:
    """It was taken without a word, and anybody on the machine had the token."""
    file = tmp_path / "token"
    file.write_text("canary\n")
    file.chmod(mode)
    code, said = give(bare, rig, file)
    if not mode & 0o077:
        assert (code, said) == (0, "")
        return
    assert code == 2
    assert f"can be read or changed by others (mode {mode:04o})" in said
    assert "run chmod 600" in said
    assert "canary" not in said
    assert not (rig / "access").exists()


def test_a_rigs_folder_that_is_not_there_is_named(bare: Desk, rig: Path) -> None:
    missing = str(rig / "gone")
    given = ("rig", "access", "set", "w", "--state", missing, "--for", "https://a.example")
    done = bare.run(*given, stdin="canary")
    assert done.returncode == 3
    assert f"there is no rig's folder {missing}" in done.stderr
