"""Accesses: used for what they are for, and nothing of the secret comes out anywhere."""

import logging
import os
import secrets
from collections.abc import Callable
from pathlib import Path

import pytest

from supervisor.fetch import Fetcher
from tests.harness.goods import commit, git
from tests.supervisor.forge import SSHD, Forge, key_pair, ssh_server
from thermite.rig.access import set_access
from thermite.schema.access import Access
from thermite.schema.command import Source
from thermite.schema.offer import FailedImport, FetchedFile, WantedSource
from thermite.schema.rig_settings import RigSettings


@pytest.fixture
def state(tmp_path: Path) -> Path:
    for name in ("tmp", "new"):
        (tmp_path / "rig" / "inbox" / name).mkdir(parents=True)
    return tmp_path / "rig"


@pytest.fixture
def token() -> str:
    return f"canary%{secrets.token_hex(16)}"


@pytest.fixture
def forge(tmp_path: Path, token: str) -> Forge:
    commit(tmp_path / "kit", {"kit.json": "1"})
    (tmp_path / "repos").mkdir()
    git(tmp_path, "clone", "-q", "--bare", str(tmp_path / "kit"), "repos/team/kit.git")
    return Forge(tmp_path / "repos", ("git", token))


def newest(tmp_path: Path) -> str:
    return git(tmp_path / "kit", "rev-parse", "HEAD")


def fetched(
    state: Path, url: str, commit_id: str, access: str | None, **settings: object
) -> FetchedFile | FailedImport:
    fetcher = Fetcher(state / "inbox", RigSettings(**settings))  # type: ignore[arg-type]
    source = Source(git=url, access=access)
    wanted = WantedSource(import_=0, source=source, repo="kit", commit=commit_id, path="kit.bundle")
    files, failed = fetcher.fetch([wanted])
    assert list((state / "inbox" / "tmp").iterdir()) == []
    assert len(files) + len(failed) == 1
    return files[0] if files else failed[0]


def everywhere(secret: str) -> list[str]:
    """Where a secret stands among the arguments and variables of this machine's processes."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        for name in ("cmdline", "environ"):
            try:
                raw = (process / name).read_bytes()
            except OSError:
                continue
            if secret.encode() in raw:
                found.append(f"{process.name}/{name}: {raw!r}")
    return found


def test_an_https_access_lets_a_rig_in_and_shows_its_token_to_nobody(
    state: Path,
    forge: Forge,
    token: str,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    shown: list[str] = []
    forge.when_asked = lambda: shown.extend(everywhere(token))
    with forge.serving(tmp_path) as pem:
        url = f"{forge.url}/team/kit.git"
        without = fetched(state, url, newest(tmp_path), None)
        access = Access(place=f"{forge.url}/team", secret=token, trusted=pem.read_text())
        set_access(state, "work", access)
        found = fetched(state, url, newest(tmp_path), "work")
    assert isinstance(without, FailedImport)
    assert isinstance(found, FetchedFile), found
    assert forge.header in forge.seen
    assert shown == []
    assert token not in (state / "inbox" / "new" / "kit.bundle").read_bytes().decode("latin-1")
    assert token not in "".join(capfd.readouterr()) + caplog.text


@pytest.mark.parametrize("secret_from", ["file", "key_command"])
def test_a_server_that_repeats_the_token_puts_it_into_no_message(
    state: Path, forge: Forge, token: str, tmp_path: Path, secret_from: str
) -> None:
    forge.allowed = ("git", "another")
    forge.refusal = "{token} is wrong\nso {token}"
    printer = tmp_path / "printer"
    printer.write_text(f"#!/bin/sh\necho {token}\necho $1 >&2\n")
    printer.chmod(0o755)
    with forge.serving(tmp_path) as pem:
        access = Access(
            place=forge.url,
            secret=token if secret_from == "file" else None,
            trusted=pem.read_text(),
        )
        set_access(state, "work", access)
        found = fetched(
            state,
            f"{forge.url}/team/kit.git",
            newest(tmp_path),
            "work",
            key_command=[str(printer), "{name}"],
        )
    assert isinstance(found, FailedImport)
    assert "git can't fetch" in found.message
    wrong = [one for one in forge.seen if one not in {"", forge.header}]
    assert wrong, "the token was never tried"
    for hidden in (token, wrong[0].removeprefix("Basic ")):
        assert hidden not in found.message


def test_key_command_gives_the_secret_of_the_access_that_is_named(
    state: Path, forge: Forge, token: str, tmp_path: Path
) -> None:
    (tmp_path / "work").write_text(f"{token}\n")
    command = ["cat", f"{tmp_path}/{{name}}"]
    with forge.serving(tmp_path) as pem:
        url = f"{forge.url}/team/kit.git"
        set_access(state, "work", Access(place=forge.url, trusted=pem.read_text()))
        found = fetched(state, url, newest(tmp_path), "work", key_command=command)
        set_access(state, "gone", Access(place=forge.url, trusted=pem.read_text()))
        gone = fetched(state, url, newest(tmp_path), "gone", key_command=command)
        unset = fetched(state, url, newest(tmp_path), "work")
    assert isinstance(found, FetchedFile), found
    assert isinstance(gone, FailedImport)
    assert gone.message == (
        "key_command of this rig gives no secret for access gone: it ended with 1"
    )
    assert isinstance(unset, FailedImport)
    assert "its rig.toml has none" in unset.message


@pytest.mark.skipif(SSHD is None, reason="there is no sshd here: install openssh-server")
@pytest.mark.parametrize("with_account", [True, False])
def test_an_ssh_access_lets_a_rig_in_by_its_key(
    state: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    with_account: bool,
) -> None:
    # A leased uid has no account, and ssh refuses to work for such a one.
    if not with_account and not can_make_user_namespaces():
        pytest.skip("this kernel lets nobody make a user namespace")
    made = commit(tmp_path / "kit", {"kit.json": "1"})
    if not with_account:
        monkeypatch.setattr("supervisor.access.pwd.getpwuid", no_account)
    with ssh_server(tmp_path) as (place, client, hosts):
        url = f"{place}{tmp_path}/kit"
        without = fetched(state, url, made, None)
        other = key_pair(tmp_path, "other").read_text()
        set_access(state, "other", Access(place=place, secret=other, trusted=hosts))
        refused = fetched(state, url, made, "other")
        key = client.read_text()
        set_access(state, "stranger", Access(place=place, secret=key))
        stranger = fetched(state, url, made, "stranger")
        set_access(state, "work", Access(place=place, secret=key, trusted=hosts))
        found = fetched(state, url, made, "work")
    assert isinstance(without, FailedImport)
    assert isinstance(refused, FailedImport)
    assert "Permission denied" in refused.message
    assert isinstance(stranger, FailedImport)
    assert "Host key verification failed" in stranger.message
    assert isinstance(found, FetchedFile), found
    told = "".join(one.message for one in (without, refused, stranger))
    assert not any(line in told for line in (key + other).splitlines() if "---" not in line)


def no_account(uid: int) -> object:
    raise KeyError(uid)


def can_make_user_namespaces() -> bool:
    return os.system("unshare --user --map-root-user true 2>/dev/null") == 0


@pytest.mark.parametrize(
    ("place", "url", "used"),
    [
        pytest.param("https://a.example/t", "https://a.example/t/k.git", True, id="below"),
        pytest.param("https://a.example", "https://a.example/k.git", True, id="a host"),
        pytest.param("https://a.example/t", "https://a.example/t2/k.git", False, id="beside"),
        pytest.param("https://a.example/t", "https://a.example/t/../x", False, id="up"),
        pytest.param("https://a.example/t", "https://a.example/t/%2e%2e/x", False, id="escaped"),
        pytest.param("https://a.example", "https://a.example.evil.org/k", False, id="longer host"),
        pytest.param("https://a.example", "https://a.example:8443/k", False, id="another port"),
        pytest.param("https://a.example", "ssh://git@a.example/k", False, id="another scheme"),
        pytest.param("ssh://git@a.example/t", "git@a.example:t/k.git", True, id="scp form"),
        pytest.param("ssh://git@a.example", "ssh://root@a.example/t", False, id="another user"),
        pytest.param("https://a.example", "https://b.example/@a.example", False, id="in the path"),
    ],
)
def test_an_access_is_used_only_for_what_it_is_for(
    state: Path, place: str, url: str, *, used: bool
) -> None:
    secret = "canary" if place.startswith("https") else "-----BEGIN PRIVATE KEY-----\ncanary"
    set_access(state, "work", Access(place=place, secret=secret))
    fetcher_settings = {"allow_file_sources": False}
    found = fetched(state, url, "HEAD" if used else "a" * 40, "work", **fetcher_settings)
    assert isinstance(found, FailedImport)
    if used:  # it comes as far as the next check, and opens no connection
        assert "no full commit id" in found.message
    else:
        assert "is for" in found.message or "is no source" in found.message
    assert "canary" not in found.message


def plain(path: Path) -> None:
    path.write_text('{"place": 1, "secret": "canary"}')


def loose(path: Path) -> None:
    path.write_text('{"place": "https://a.example", "secret": "canary"}')
    path.chmod(0o640)


def linked(path: Path) -> None:
    path.with_suffix(".real").write_text('{"place": "https://a.example", "secret": "canary"}')
    path.symlink_to(path.with_suffix(".real"))


def piped(path: Path) -> None:
    os.mkfifo(path, 0o600)


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        pytest.param(plain, "holds nothing that can be used", id="another form"),
        pytest.param(loose, "others may read it: its mode is 0640", id="loose"),
        pytest.param(linked, "can't read its access", id="a link"),
        pytest.param(piped, "no plain file", id="a pipe"),
    ],
)
def test_a_spoilt_file_is_told_without_its_content(
    state: Path, spoil: Callable[[Path], None], says: str
) -> None:
    (state / "access").mkdir(mode=0o700)
    spoil(state / "access" / "work.json")
    if spoil is plain:
        (state / "access" / "work.json").chmod(0o600)
    found = fetched(state, "https://a.example/k", "a" * 40, "work")
    assert isinstance(found, FailedImport)
    assert says in found.message
    assert "run thermite rig access set work --for https://a.example/k on it" in found.message
    assert "canary" not in found.message


def test_an_access_that_is_not_there_is_named(state: Path) -> None:
    found = fetched(state, "https://example.org/kit.git", "a" * 40, "work")
    assert isinstance(found, FailedImport)
    assert found.message == (
        "this rig has no access named work: run thermite rig access set work --for"
        " https://example.org/kit.git on it"
    )


@pytest.mark.parametrize("name", ["../trust", "a/b", "", "A", "x" * 65])
def test_no_name_of_an_access_leads_out_of_its_folder(state: Path, name: str) -> None:
    found = fetched(state, "https://example.org/kit.git", "a" * 40, name)
    assert isinstance(found, FailedImport)
    assert "no name of an access" in found.message
