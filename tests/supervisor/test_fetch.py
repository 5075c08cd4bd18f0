"""Sources: which addresses a rig fetches from at all, and what git brings of a real one."""

import os
import socket
import subprocess
import threading
from pathlib import Path

import pytest

from supervisor.address import Address, FetchError, address_of
from supervisor.fetch import Fetcher
from tests.harness.goods import ENV, commit, git
from tests.requirement import shows
from thermite.schema.command import Source
from thermite.schema.offer import FailedImport, FetchedFile, WantedSource
from thermite.schema.rig_settings import RigSettings

OPEN = RigSettings(allow_file_sources=True)


@pytest.fixture
def inbox(tmp_path: Path) -> Path:
    for name in ("tmp", "new"):
        (tmp_path / "inbox" / name).mkdir(parents=True)
    return tmp_path / "inbox"


def wanted(source: Source, commit_id: str, path: str = "kit.bundle") -> WantedSource:
    return WantedSource(import_=0, source=source, repo="kit", commit=commit_id, path=path)


def fetched(fetcher: Fetcher, one: WantedSource) -> FetchedFile | FailedImport:
    files, failed = fetcher.fetch([one])
    assert len(files) + len(failed) == 1
    return files[0] if files else failed[0]


@pytest.mark.parametrize(
    ("url", "protocol"),
    [
        ("https://example.org/kit.git", "https"),
        ("ssh://git@example.org/kit.git", "ssh"),
        ("git@example.org:kits/kit.git", "ssh"),
    ],
)
@shows("K-183")
def test_https_and_ssh_are_fetched(url: str, protocol: str) -> None:
    assert address_of(Source(git=url), RigSettings()) == Address(url, protocol)


@pytest.mark.parametrize(
    "url",
    [
        pytest.param("http://example.org/kit.git", id="http"),
        pytest.param("git://example.org/kit.git", id="git"),
        pytest.param("ext::sh -c touch% /tmp/x", id="ext"),
        pytest.param("--upload-pack=touch /tmp/x", id="an option"),
        pytest.param("-oProxyCommand=x@y:z", id="an option like ssh"),
        pytest.param("https://example.org/a b", id="a space"),
        pytest.param("https://example.org/\n", id="a line break"),
        pytest.param("kit.git", id="a relative path"),
        pytest.param("../kit.git", id="a way up"),
        pytest.param("", id="nothing"),
    ],
)
def test_other_addresses_are_not(url: str) -> None:
    with pytest.raises(FetchError, match="send the bundle instead"):
        address_of(Source(git=url), OPEN)


@pytest.mark.parametrize("url", ["file:///srv/kit.git", "/srv/kit.git"])
def test_the_rigs_own_disk_is_read_only_when_its_owner_allows_it(url: str) -> None:
    with pytest.raises(FetchError, match="allow_file_sources = true"):
        address_of(Source(git=url), RigSettings())
    assert address_of(Source(git=url), OPEN).protocol == "file"


@shows("K-183")
def test_a_kit_of_control_lies_below_control_url() -> None:
    source = Source(control="kits/smoke-cpu")
    with pytest.raises(FetchError) as told:
        address_of(source, RigSettings())
    assert str(told.value) == ("this rig has no control_url: set it in rig.toml or send the bundle")
    settings = RigSettings(control_url="https://control.example.org/")
    assert address_of(source, settings).url == "https://control.example.org/kits/smoke-cpu.git"
    for bad in ("kits/../../etc", "kits/", "models/x", "kits/a/b"):
        with pytest.raises(FetchError, match="no kit of control"):
            address_of(Source(control=bad), settings)


def test_a_commit_is_fetched_by_its_id_whatever_refs_exist(inbox: Path, tmp_path: Path) -> None:
    repo = tmp_path / "kit"
    first = commit(repo, {"kit.json": "1"})
    commit(repo, {"kit.json": "2"})
    git(repo, "checkout", "-q", "--detach")
    found = fetched(Fetcher(inbox, OPEN), wanted(Source(git=repo.as_uri()), first))
    assert isinstance(found, FetchedFile), found
    clone = tmp_path / "clone"
    subprocess.run(["git", "init", "-q", str(clone)], env=ENV, check=True)
    git(clone, "fetch", "-q", str(inbox / "new" / "kit.bundle"), "refs/thermite/wanted")
    assert git(clone, "rev-parse", "FETCH_HEAD") == first
    assert list((inbox / "tmp").iterdir()) == []
    assert (inbox / "new" / "kit.bundle").stat().st_mode & 0o777 == 0o644


def test_a_repository_of_another_user_is_fetched_where_files_are_allowed(
    inbox: Path, tmp_path: Path
) -> None:
    """With users of its own a rig's supervisor owns no repository at all."""
    repo = tmp_path / "kit"
    made = commit(repo, {"kit.json": "1"})
    if os.getuid() == 0:
        for path in (repo, repo / ".git"):
            os.chown(path, 1001, 1001)
    found = fetched(Fetcher(inbox, OPEN), wanted(Source(git=repo.as_uri()), made))
    assert isinstance(found, FetchedFile), found


def test_an_operators_configuration_takes_no_part(
    inbox: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo = tmp_path / "kit"
    made = commit(repo, {"kit.json": "1"})
    home = tmp_path / "home"
    home.mkdir()
    (home / ".gitconfig").write_text(
        '[protocol]\n\tallow = never\n[url "https://evil.example.org/"]\n\tinsteadOf = file://\n'
    )
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("GIT_DIR", "/nonexistent")
    found = fetched(Fetcher(inbox, OPEN), wanted(Source(git=repo.as_uri()), made))
    assert isinstance(found, FetchedFile), found


@pytest.mark.parametrize(
    ("commit_id", "path", "says"),
    [
        pytest.param("a" * 40, "kit.bundle", "git can't fetch", id="no such commit"),
        pytest.param("HEAD", "kit.bundle", "no full commit id", id="a branch"),
        pytest.param("--help", "kit.bundle", "no full commit id", id="an option"),
        pytest.param("a" * 40, "../up.bundle", "no name for a fetched bundle", id="a way up"),
        pytest.param("a" * 40, "x.cmd.json", "no name for a fetched bundle", id="a command"),
    ],
)
def test_what_cannot_be_had_is_told_with_its_reason(
    inbox: Path, tmp_path: Path, commit_id: str, path: str, says: str
) -> None:
    repo = tmp_path / "kit"
    commit(repo, {"kit.json": "1"})
    found = fetched(Fetcher(inbox, OPEN), wanted(Source(git=repo.as_uri()), commit_id, path))
    assert isinstance(found, FailedImport)
    assert says in found.message
    assert list((inbox / "new").iterdir()) == []
    assert list((inbox / "tmp").iterdir()) == []


def test_a_fetch_that_is_too_large_is_ended(inbox: Path, tmp_path: Path) -> None:
    repo = tmp_path / "kit"
    repo.mkdir()
    (repo / "big").write_bytes(os.urandom(3 << 20))
    made = commit(repo, {"kit.json": "1"})
    small = RigSettings(allow_file_sources=True, bundle_max_mib=1)
    found = fetched(Fetcher(inbox, small), wanted(Source(git=repo.as_uri()), made))
    assert isinstance(found, FailedImport)
    assert "bundle_max_mib = 1" in found.message
    assert list((inbox / "new").iterdir()) == []


def test_a_server_that_never_answers_is_given_up(inbox: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"https://127.0.0.1:{silent.getsockname()[1]}/kit.git"
        fetcher = Fetcher(inbox, RigSettings(), deadline_s=0.5)
        found = fetched(fetcher, wanted(Source(git=url), "a" * 40))
    assert isinstance(found, FailedImport)
    assert "took longer than 0.5 s" in found.message


def test_the_rigs_end_ends_a_fetch(inbox: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"https://127.0.0.1:{silent.getsockname()[1]}/kit.git"
        fetcher = Fetcher(inbox, RigSettings())
        end = threading.Timer(0.5, fetcher.stop)
        end.start()
        found = fetched(fetcher, wanted(Source(git=url), "a" * 40))
        end.join()
    assert isinstance(found, FailedImport)
