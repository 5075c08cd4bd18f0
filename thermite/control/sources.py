"""Where project and kit come from: a repository, a folder, an address, or a kept kit's name."""

import os
import re
import shlex
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from thermite.control.home import ControlHome
from thermite.errors import KitError, NotFoundError, UsageError
from thermite.kit.bundle import has_commit, keep, ref_of
from thermite.kit.folder import commit_of_folder
from thermite.kit.git import GitError, git, is_repository, make_repository
from thermite.kit.manifest import MANIFEST, MOST_BYTES, manifest_bytes, read_manifest
from thermite.schema.ids import CommitId, is_commit_id, is_name
from thermite.schema.kit import Kit
from thermite.shipped import shipped, shipped_names

NEWEST: Final = "refs/thermite/newest"
"""In a kept kit's repository: the commit that control sent last."""

# git's own two forms of an address: scheme://… and user@host:path (gitprotocol, scp syntax).
_ADDRESS: Final = re.compile(r"[a-z][a-z0-9+.-]*://.*|[^/\s]+@[^/\s:]+:[^\s]*")
_NETWORK: Final = "https:ssh"


@dataclass(frozen=True)
class Source:
    """A commit and the repository on this machine that holds it."""

    repo: Path
    commit: CommitId


@dataclass(frozen=True)
class KitSource:
    """A kit at a commit, with what its manifest says."""

    at: Source
    kit: Kit


def is_address(text: str) -> bool:
    """Return whether a text is an address of a repository and no path or name."""
    return _ADDRESS.fullmatch(text) is not None


def enclosing_repository(start: Path) -> Path | None:
    """Return the root of the repository that holds a path, whoever owns it, or None."""
    here = start.absolute()
    return next((folder for folder in (here, *here.parents) if is_repository(folder)), None)


def resolve(repo: Path, revision: str) -> CommitId:
    """Return the full id of a revision.

    Raises:
        UsageError: the repository has no such revision, or no commit at all.
    """
    found = None if "\n" in revision or "\0" in revision else ref_of(repo, revision)
    if found is not None:
        return CommitId(found)
    if not git(repo, "rev-list", "--all", "--max-count=1") and ref_of(repo, "HEAD") is None:
        raise UsageError(f"{repo} has no commit: commit something there first")
    raise UsageError(f"{repo} has no revision {revision[:80]!a}: commit it, or fetch it there")


def project_source(where: Path, revision: str) -> Source:
    """Return the project's commit in the repository that holds a path.

    Raises:
        UsageError: no repository there, or no such revision in it.
    """
    repo = enclosing_repository(where)
    if repo is None:
        raise UsageError(
            f"{where} is in no git repository: run git init there and commit the project, or name"
            " its repository with --project"
        )
    return Source(repo, resolve(repo, revision))


def kit_source(home: ControlHome, given: str, revision: str | None) -> KitSource:
    """Return a kit by path, by address, by the name it is kept under, or as it is shipped.

    Args:
        home: control's folder.
        given: what `--kit` says.
        revision: the contract's `project.kit.commit`, when there is one.

    Raises:
        UsageError: there is no such kit, or not at this revision.
        KitError: its manifest has problems.
    """
    if is_address(given):
        return _fetched_kit(home, given, revision or "HEAD")
    path = Path(given)
    if path.is_dir():
        return _kit_at_path(home, path, revision)
    kept = home.kits / f"{given}.git"
    if is_name(given) and is_kept(kept):
        at = Source(kept, resolve(kept, revision or NEWEST))
        return KitSource(at, manifest_at(at))
    return _kit_at_path(home, _shipped(home, given), revision)


def shadow_warnings(home: ControlHome, given: str, commit: str) -> list[str]:
    """Return a warning where a bare name meant a kept kit, and one that we ship has it, too.

    After another kit of that name was sent, or after an upgrade, the two are not the same, and
    whoever types the name may think of either.

    Args:
        given: what `--kit` says; commit: the kit that it came to.
    """
    if given not in shipped_names("kits") or Path(given).is_dir():
        return []
    ours = shipped(f"kits/{given}")
    if commit_of_folder(home.kits / f"{given}.git", ours) == commit:
        return []
    kept = f"kit {given} is the one that control keeps, at {commit[:12]}"
    other = f"for the one that comes with Thermite give --kit {shlex.quote(str(ours))}"
    return [f"{kept}: {other}"]


def is_kept(repo: Path) -> bool:
    """Return whether a kit's repository holds one that was sent; a look at one keeps none."""
    return is_repository(repo) and ref_of(repo, NEWEST) is not None


def kept_kits(home: ControlHome) -> list[str]:
    """Return the names of the kits that control keeps."""
    if not home.kits.is_dir():
        return []
    found = sorted(path for path in home.kits.iterdir() if path.suffix == ".git")
    return [path.stem for path in found if is_kept(path)]


def note_sent_kit(home: ControlHome, at: Source) -> None:
    """Let a kept kit's name mean the commit that was sent now; of others there is nothing to note.

    Raises:
        GitError: its repository can't be written.
    """
    if at.repo.parent == home.kits:
        git(at.repo, "update-ref", NEWEST, at.commit)


def shipped_kits() -> list[str]:
    """Return the names of the kits that come with Thermite."""
    return shipped_names("kits")


def manifest_at(at: Source) -> Kit:
    """Return the manifest of a kit at a commit.

    Raises:
        KitError: there is none, or it has problems: all of them.
    """
    try:
        raw = git(
            at.repo, "cat-file", "blob", f"{at.commit}:{MANIFEST}", most_output=MOST_BYTES + 1
        )
    except GitError:
        raise KitError(f"{at.repo} has no {MANIFEST} at its root at {at.commit}") from None
    return _manifest(raw)


def _manifest(raw: bytes) -> Kit:
    found = read_manifest(raw)
    if isinstance(found, Kit):
        return found
    raise KitError("; ".join(str(problem) for problem in found))


def _kit_at_path(home: ControlHome, path: Path, revision: str | None) -> KitSource:
    if is_repository(path):
        at = Source(path.absolute(), resolve(path, revision or "HEAD"))
        return KitSource(at, manifest_at(at))
    kit = _manifest(manifest_bytes(path))
    home.make()
    kept = home.kits / f"{kit.name}.git"
    at = Source(kept, commit_of_folder(kept, path))
    if revision is not None and revision != at.commit:
        raise UsageError(
            f"the kit in {path} is commit {at.commit}, and the contract names {revision[:80]!a}:"
            " take the commit out of the contract, or give the kit as it was"
        )
    return KitSource(at, kit)


def _shipped(home: ControlHome, name: str) -> Path:
    """Return the folder of a kit that comes with Thermite."""
    try:
        return shipped(f"kits/{name}")
    except UsageError:
        raise NotFoundError(
            f"there is no kit {name!r}: it is no folder, none that comes with Thermite, and control"
            f" keeps {', '.join(kept_kits(home)) or 'none'}: give a path, an address or a name"
        ) from None


def _fetched_kit(home: ControlHome, address: str, revision: str) -> KitSource:
    home.make()
    with fetched(address, revision, home.kits) as source:
        kit = manifest_at(source)
        kept = home.kits / f"{kit.name}.git"
        if not has_commit(kept, source.commit):
            keep(source.repo, kept, source.commit)
    return KitSource(Source(kept, source.commit), kit)


@contextmanager
def fetched(address: str, revision: str, beside: Path) -> Iterator[Source]:
    """Fetch a repository over https or ssh into a folder that is removed afterwards.

    ssh uses the operator's own keys and agent, https the certificates of GIT_SSL_CAINFO, if it is
    set; git's configuration stays closed.

    Raises:
        UsageError: it can't be fetched, or lacks the revision.
    """
    folder = Path(tempfile.mkdtemp(prefix=".fetch-", dir=beside))
    try:
        repo = folder / "fetched.git"
        make_repository(repo)
        _fetch(repo, address)
        head = "refs/thermite/head" if revision == "HEAD" else revision
        yield Source(repo, resolve(repo, head))
    finally:
        shutil.rmtree(folder)


def _fetch(repo: Path, address: str) -> None:
    own = ("HOME", "SSH_AUTH_SOCK", "PATH", "GIT_SSL_CAINFO")
    environment = {name: os.environ[name] for name in own if name in os.environ}
    environment |= {
        "GIT_ALLOW_PROTOCOL": _NETWORK,
        "GIT_SSH_COMMAND": "ssh -o BatchMode=yes",
        "GIT_PROTOCOL_FROM_USER": "1",
    }
    refs = ("+HEAD:refs/thermite/head", "+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*")
    try:
        git(
            repo,
            "fetch",
            "--quiet",
            "--no-tags",
            "--end-of-options",
            address,
            *refs,
            env=environment,
        )
    except GitError as error:
        raise UsageError(
            f"{address[:200]!a} can't be fetched: {' '.join(error.said.split())[-400:]}: check the"
            " address (https or ssh) and your access, or give a path"
        ) from None


def is_pinned(commit: object) -> bool:
    """Return whether a contract's commit is a full id already."""
    return isinstance(commit, str) and is_commit_id(commit)
