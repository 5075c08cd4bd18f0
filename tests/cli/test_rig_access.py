"""`thermite rig access`: what is refused, and that nothing of a secret is ever repeated."""

from pathlib import Path

import pytest

from tests.cli.operator_desk import Desk

KEY = "-----BEGIN OPENSSH PRIVATE KEY-----\ncanary\n-----END OPENSSH PRIVATE KEY-----\n"


@pytest.fixture
def rig(tmp_path: Path) -> Path:
    (tmp_path / "rig").mkdir()
    return tmp_path / "rig"


@pytest.fixture
def bare(tmp_path: Path) -> Desk:
    return Desk(tmp_path / "desk")


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
        pytest.param("w", "https://u:canary@a.example", "x", "without a password", id="password"),
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


def test_a_rigs_folder_that_is_not_there_is_named(bare: Desk, rig: Path) -> None:
    missing = str(rig / "gone")
    given = ("rig", "access", "set", "w", "--state", missing, "--for", "https://a.example")
    done = bare.run(*given, stdin="canary")
    assert done.returncode == 3
    assert f"there is no rig's folder {missing}" in done.stderr
