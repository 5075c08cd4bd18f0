"""Make a bundle of one commit, and take one in without believing it.

Git's own `bundle verify` answers 0 for truncated and corrupted packs, and its fsck
settings do not reach bundles (ledger and signing, 0). So the header is read here, the
pack is unpacked in a quarantine repository, `git fsck --strict --full` walks everything
from the wanted commit, and only then is that commit fetched into the repository that
is kept. The unpacking is also given as argv lists, for a stage with a user of its own.
"""

import hashlib
import os
import re
import tempfile
from pathlib import Path
from typing import IO, Final, NamedTuple

from thermite.errors import CommandError, UsageError
from thermite.kit.folder import commit_of_folder
from thermite.kit.git import (
    QUARANTINE_FOLDER,
    Finished,
    git,
    git_argv,
    init_args,
    is_repository,
    make_repository,
    run_git,
)
from thermite.schema.ids import CommitId, Sha256, is_commit_id

__all__ = [
    "BundleHeader",
    "check_commit",
    "check_header",
    "check_unbundled",
    "check_walk",
    "commit_of_folder",
    "git",
    "has_commit",
    "keep",
    "keep_from_bundle",
    "kind_of",
    "make_bundle",
    "quarantine",
    "quarantine_steps",
    "read_header",
    "ref_of",
]

MOST_HEADER: Final = 1 << 20
"""Most bytes of a bundle's header; ours have three lines."""
QUARANTINE: Final = "quarantine.git"
"""Name of the quarantine repository below a stage's folder."""

_SIGNATURES: Final = {b"# v2 git bundle": 2, b"# v3 git bundle": 3}
_FULL: Final = "send a full bundle"
_PACK: Final = ("pack-objects", "--revs", "--stdout", "--quiet")
_WALK: Final = ("fsck", "--strict", "--full", "--no-dangling", "--no-progress")
_NAMED: Final = 5  # ids that a message names: enough to find the range that was sent
_KEPT_REF: Final = "refs/thermite/kept"
_HEX: Final = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_SIZE_OF_SHA1: Final = 40


class BundleHeader(NamedTuple):
    """What a bundle says of itself: ids it needs, ids it names, where its pack starts."""

    needs: list[str]
    names: dict[str, str]
    pack_at: int


def make_bundle(repo: Path, commit: CommitId, into: Path) -> tuple[Sha256, int]:
    """Write a bundle with one commit and its whole history; return its SHA-256 and bytes.

    The repository is only read: no ref is made in it, and it may belong to another user.

    Raises:
        UsageError: not a repository, a shallow clone, or without this commit.
    """
    _check_source(repo, commit)
    extra = "" if len(commit) == _SIZE_OF_SHA1 else "@object-format=sha256\n"
    version = "# v3 git bundle\n" if extra else "# v2 git bundle\n"
    with into.open("x+b") as file:
        file.write(f"{version}{extra}{commit} HEAD\n{commit} refs/heads/main\n\n".encode())
        file.flush()
        done = run_git(repo, *_PACK, stdin=f"{commit}\n".encode(), into=file)
        if done.code != 0:
            into.unlink()
            raise UsageError(f"{repo} at {commit} can't be packed: {done.stderr}")
        os.fsync(file.fileno())
        file.seek(0)
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        return Sha256(digest), file.seek(0, os.SEEK_END)


def _check_source(repo: Path, commit: CommitId) -> None:
    if not is_repository(repo):
        raise UsageError(f"{repo} is not the root of a git repository")
    if not is_commit_id(commit):
        raise UsageError(f"{commit!r} is not a full commit id")
    if git(repo, "rev-parse", "--is-shallow-repository").strip() == b"true":
        raise UsageError(f"{repo} is a shallow clone: run git fetch --unshallow in it")
    if kind_of(repo, commit) != "commit":
        raise UsageError(f"{repo} has no commit {commit}: commit there, or fetch it")


def kind_of(repo: Path, object_id: str) -> str | None:
    """Return what an object is (`commit`, `tree`, `blob`, `tag`), or None when it's not there."""
    done = run_git(repo, "cat-file", "-t", object_id)
    return done.stdout.decode("ascii").strip() if done.code == 0 else None


def has_commit(repo: Path, commit: CommitId) -> bool:
    """Return whether a kept repository holds this commit, whole and checked."""
    return is_repository(repo) and ref_of(repo, f"{_KEPT_REF}/{commit}") == commit


def ref_of(repo: Path, name: str) -> str | None:
    """Return the commit that a ref or revision names, or None."""
    done = run_git(
        repo, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}"
    )
    return done.stdout.decode("ascii").strip() if done.code == 0 else None


def read_header(file: IO[bytes]) -> BundleHeader:
    """Return what a bundle's header says.

    Raises:
        CommandError: `bundle_bad`, it is no bundle, or an unknown kind of one.
    """
    file.seek(0)
    needs: list[str] = []
    names: dict[str, str] = {}
    version = _SIGNATURES.get(file.readline(MOST_HEADER).rstrip(b"\n"))
    if version is None:
        raise CommandError("bundle_bad", "it does not start as a git bundle does")
    while (line := _header_line(file)) != "":
        if line.startswith("@"):
            _check_capability(line, version)
        elif line.startswith("-"):
            needs.append(_id_in(line[1:]))
        else:
            names[line.partition(" ")[2]] = _id_in(line)
    return BundleHeader(needs, names, file.tell())


def _header_line(file: IO[bytes]) -> str:
    line = file.readline(MOST_HEADER)
    if file.tell() > MOST_HEADER or not line.endswith(b"\n"):
        raise CommandError("bundle_bad", "its header is cut off or longer than 1 MiB")
    return line.decode("utf-8", "backslashreplace").rstrip("\n")


def _check_capability(line: str, version: int) -> None:
    known = version == _SIGNATURES[b"# v3 git bundle"] and line in {
        "@object-format=sha1",
        "@object-format=sha256",
    }
    if not known:
        raise CommandError("bundle_bad", f"it asks for {line[:80]!a}: {_FULL}")


def _id_in(line: str) -> str:
    found = line.partition(" ")[0]
    if _HEX.fullmatch(found) is None:
        raise CommandError("bundle_bad", "a line of its header does not start with a full id")
    return found


def check_header(header: BundleHeader) -> None:
    """Refuse a bundle that is only part of a history.

    Raises:
        CommandError: `bundle_bad`, with the ids that it needs.
    """
    if header.needs:
        raise CommandError(
            "bundle_bad", f"it needs commits that are not in it ({_list(header.needs)}): {_FULL}"
        )


def _list(ids: list[str]) -> str:
    more = len(ids) - _NAMED
    return ", ".join(ids[:_NAMED]) + (f" and {more} more" if more > 0 else "")


def quarantine_steps(bundle: str, commit: CommitId, *, program: str = "git") -> list[list[str]]:
    """Return the argv lists that unpack a bundle and walk it, run in an empty folder.

    The last one is the walk, whose result `check_walk` judges; the ones before must exit 0.

    Args:
        bundle: the bundle's path, absolute or relative to that folder.
    """
    sha256 = len(commit) != _SIZE_OF_SHA1
    return [
        git_argv(QUARANTINE, *init_args(sha256=sha256), program=program),
        git_argv(QUARANTINE, "bundle", "unbundle", "--", bundle, program=program),
        git_argv(QUARANTINE, *_WALK, commit, program=program),
    ]


def check_walk(code: int, output: str, commit: CommitId) -> None:
    """Judge what `git fsck` said about a quarantine.

    Args:
        output: standard output and standard error.

    Raises:
        CommandError: `commit_missing`, or `bundle_bad` with what is wrong or missing.
    """
    if code == 0:
        return
    missing = list(dict.fromkeys(re.findall(rf"missing \w+ ({_HEX.pattern})", output)))
    if commit in missing or f"invalid object: {commit}" in output or f"{commit}: object" in output:
        raise CommandError("commit_missing", f"commit {commit} is not in it: {_FULL}")
    if missing:
        raise CommandError("bundle_bad", f"objects are missing ({_list(missing)}): {_FULL}")
    first = next((line for line in output.splitlines() if line.startswith("error")), output)
    raise CommandError("bundle_bad", f"git fsck refuses it: {ascii(first[:300])[1:-1]}")


def quarantine(bundle: Path, folder: Path, commit: CommitId) -> Path:
    """Unpack a bundle into a new quarantine repository below folder and walk it.

    Raises:
        CommandError: `bundle_bad` or `commit_missing`; nothing but the folder was written.
    """
    with bundle.open("rb") as file:
        check_header(read_header(file))
    repo = folder / QUARANTINE
    make_repository(repo, sha256=len(commit) != _SIZE_OF_SHA1)
    done = run_git(repo, "bundle", "unbundle", "--", str(bundle.absolute()))
    check_unbundled(done)
    check_commit(kind_of(repo, commit), commit)
    walk = run_git(repo, *_WALK, commit)
    check_walk(walk.code, walk.stdout.decode("utf-8", "replace") + walk.stderr, commit)
    return repo


def check_unbundled(done: Finished) -> None:
    """Refuse a bundle whose pack git can't unpack.

    Raises:
        CommandError: `bundle_bad`.
    """
    if done.code != 0:
        said = ascii(done.stderr.splitlines()[0][:300] if done.stderr else "no reason given")[1:-1]
        raise CommandError("bundle_bad", f"its pack is damaged or cut off ({said}): {_FULL}")


def check_commit(kind: str | None, commit: CommitId) -> None:
    """Refuse a bundle that does not hold the commit, or holds something else by that id.

    Raises:
        CommandError: `commit_missing`.
    """
    if kind is None:
        raise CommandError("commit_missing", f"commit {commit} is not in it: {_FULL}")
    if kind != "commit":
        raise CommandError("commit_missing", f"{commit} is a {kind} and not a commit")


def keep(source: Path, kept: Path, commit: CommitId) -> None:
    """Fetch one commit from a walked quarantine into a repository that is kept.

    Both belong to this process's user. Twice is once.
    """
    make_repository(kept, sha256=len(commit) != _SIZE_OF_SHA1)
    ref = f"{_KEPT_REF}/{commit}"
    git(source, "update-ref", ref, commit)
    git(
        kept,
        "fetch",
        "--quiet",
        "--no-tags",
        "--no-write-fetch-head",
        "--no-auto-maintenance",
        "--no-recurse-submodules",
        "--end-of-options",
        str(source.absolute()),
        f"{ref}:{ref}",
    )


def keep_from_bundle(bundle: Path, kept: Path, commit: CommitId) -> None:
    """Take one commit out of a bundle into a kept repository, through a quarantine.

    Raises:
        CommandError: `bundle_bad` or `commit_missing`; the kept repository is as it was.
    """
    if has_commit(kept, commit):
        return
    kept.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with tempfile.TemporaryDirectory(prefix=QUARANTINE_FOLDER, dir=kept.parent) as folder:
        keep(quarantine(bundle, Path(folder), commit), kept, commit)
