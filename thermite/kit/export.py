"""Read the files of one commit as git stores them: raw blobs, no attributes, no filters.

`git archive` and checkouts obey the tree's own `.gitattributes`, so a candidate could
hide or rewrite files in its export. Here `ls-tree` lists and `cat-file --batch` hands
over the bytes; everything is counted before anything is read. Source: the design page
on isolation, 4.1, Source export; kit requirements, 18, refused source tree.
"""

import os
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final, Literal, NamedTuple

from thermite.errors import InfrastructureError, KitError, ThermiteError
from thermite.kit.git import git, run_git
from thermite.schema.document import printable
from thermite.schema.ids import CommitId, TreeId, is_commit_id
from thermite.schema.stage import CollectLimits, Entry

SOURCE_LIMITS: Final = CollectLimits(entries=49_999, levels=127, total_bytes=64 << 20)
"""Largest source tree: one below the disk rule's counts (Kit manifest, Limits), 64 MiB as
`budget.candidate_mib`."""
KIT_LIMITS: Final = CollectLimits(entries=49_999, levels=127, total_bytes=1 << 30)
"""Largest kit; what is larger is a model file."""

_MOST_LISTING: Final = 64 << 20  # bytes of ls-tree: 49,999 paths of 1.3 KiB each
_MOST_LINKS: Final = 40  # as Linux: more links on the way to a file are a loop (path_resolution.7)
_SHOWN: Final = 20  # problems that one refusal names


class SourceRefused(ThermiteError):  # noqa: N818 (the word of the reason: source refused)
    """A commit's tree can't be judged: the author's fault; `problems` has one text each."""

    def __init__(self, problems: Sequence[str]) -> None:
        more = len(problems) - _SHOWN
        self.problems = [*problems[:_SHOWN], *([f"and {more} more"] if more > 0 else [])]
        super().__init__("; ".join(self.problems))


class Listed(NamedTuple):
    """One line of `git ls-tree`: size in bytes, None for a folder or another repository."""

    mode: str
    object_id: str
    size: int | None
    path: bytes


def tree_of(repo: Path, commit: CommitId) -> TreeId:
    """Return the tree of a commit.

    Raises:
        InfrastructureError: the commit is not in the repository.
    """
    if not is_commit_id(commit):
        raise InfrastructureError(f"{commit!r} is not a full commit id")
    return TreeId(git(repo, "rev-parse", "--verify", f"{commit}^{{tree}}").decode("ascii").strip())


def tree_entries(
    repo: Path, commit: CommitId, limits: CollectLimits = SOURCE_LIMITS
) -> list[Entry]:
    """Return a candidate's files, links and folders, in git's order, as raw bytes.

    Raises:
        SourceRefused: it has `.kit`, a part named `.git`, another repository inside, a
            link that leaves the tree, a name no stage can hold, or more than the limits.
        InfrastructureError: the commit is not in the repository.
    """
    listed = list_tree(repo, commit, limits)
    problems = [*_kit_problems(listed), *tree_problems(listed, limits)]
    if problems:
        raise SourceRefused(problems)
    return _with_bytes(repo, listed)


def list_tree(repo: Path, commit: CommitId, limits: CollectLimits) -> list[Listed]:
    """Return what a commit's tree holds, folders too, without reading a single file.

    Raises:
        SourceRefused: there is more than the limits allow.
        InfrastructureError: the commit is not in the repository.
    """
    tree = tree_of(repo, commit)
    done = run_git(
        repo, "ls-tree", "-r", "-t", "-z", "--long", "--full-tree", tree, most_output=_MOST_LISTING
    )
    lines = done.stdout.split(b"\0")[:-1]
    if done.cut or len(lines) > limits.entries:
        raise SourceRefused([f"more than {limits.entries} files and folders"])
    if done.code < 0:  # git's own recursion has no limit before 2.43
        raise SourceRefused([f"nested more than {limits.levels} deep"])
    if done.code != 0:
        raise InfrastructureError(f"git ls-tree failed (exit {done.code}): {done.stderr}")
    return [_listed(line) for line in lines]


def _listed(line: bytes) -> Listed:
    facts, _, path = line.partition(b"\t")
    mode, kind, object_id, size = facts.decode("ascii").split()
    return Listed(mode, object_id, int(size) if kind == "blob" else None, path)


def tree_problems(listed: Sequence[Listed], limits: CollectLimits) -> list[str]:
    """Return what keeps a tree from being laid out in a folder, one text each."""
    problems: list[str] = []
    seen: set[bytes] = set()
    for one in listed:
        problem = _name_problem(one, limits.levels)
        if one.path in seen:
            problem = f"{shown_path(one.path)} stands twice"
        elif one.mode == "160000":
            problem = f"{shown_path(one.path)} is another git repository"
        if problem:
            problems.append(problem)
        seen.add(one.path)
    total = sum(one.size or 0 for one in listed)
    if total > limits.total_bytes:
        problems.append(f"{total} bytes, and at most {limits.total_bytes} are taken")
    return problems


def _name_problem(one: Listed, levels: int) -> str | None:
    parts = one.path.split(b"/")
    shown = shown_path(one.path)
    if any(part.lower() == b".git" for part in parts):
        return f"{shown} has a part named .git"
    if any(part in (b"", b".", b"..") for part in parts):
        return f"{shown} is not a plain path"
    if b"\n" in one.path or b"\r" in one.path:
        return f"{shown} has a line break in its name"
    if len(parts) > levels:
        return f"{shown[:60]}… is nested more than {levels} deep"
    if any(len(part) > _LONGEST_NAME for part in parts) or len(one.path) > _LONGEST_PATH:
        return f"{shown[:60]}… has a longer name than a folder can hold"
    return None


_LONGEST_NAME: Final = 255  # NAME_MAX of Linux
_LONGEST_PATH: Final = 3500  # PATH_MAX 4096 less the stage's own folder


def _kit_problems(listed: Iterable[Listed]) -> list[str]:
    """Return the paths at .kit, where only the judge's files may lie."""
    return [f"{shown_path(one.path)} is the kit's place" for one in listed if one.path == b".kit"]


def _with_bytes(repo: Path, listed: Sequence[Listed]) -> list[Entry]:
    """Read the blobs, and refuse links once their targets are known."""
    blobs = _blobs(repo, [one for one in listed if one.size is not None])
    entries = [
        Entry(path=one.path, kind=_KIND[one.mode], data=blobs.get(one.object_id, b""))
        for one in listed
    ]
    problems = link_problems(entries)
    if problems:
        raise SourceRefused(problems)
    return entries


_KIND: Final[dict[str, Literal["file", "executable", "link", "folder"]]] = {
    "040000": "folder",
    "100644": "file",
    "100755": "executable",
    "120000": "link",
}
"""The modes that git lists, once it has made all others one of these (gitlinks apart)."""


def _blobs(repo: Path, wanted: Sequence[Listed]) -> dict[str, bytes]:
    """Return the bytes of each object; the sizes were counted before."""
    sizes = {one.object_id: one.size or 0 for one in wanted}
    most = sum(sizes.values()) + 200 * (len(sizes) + 1)  # and one line of at most 91 bytes each
    ids = "".join(f"{object_id}\n" for object_id in sizes)
    raw = git(repo, "cat-file", "--batch", stdin=ids.encode("ascii"), most_output=most)
    found: dict[str, bytes] = {}
    at = 0
    for object_id, size in sizes.items():
        head_end = raw.index(b"\n", at)
        if raw[at:head_end] != f"{object_id} blob {size}".encode("ascii"):
            raise InfrastructureError(f"git cat-file answered {raw[at:head_end]!r} for {object_id}")
        found[object_id] = raw[head_end + 1 : head_end + 1 + size]
        at = head_end + 1 + size + 1
    return found


def link_problems(entries: Sequence[Entry]) -> list[str]:
    """Return each link that leads out of the tree, on its own or through other links."""
    links = {one.path: one.data for one in entries if one.kind == "link"}
    return [
        f"{shown_path(path)} is a link that leaves the tree"
        for path in links
        if _leaves(path, links)
    ]


def _leaves(path: bytes, links: dict[bytes, bytes]) -> bool:
    """Walk a link's target part by part; a loop counts as leaving, a missing file does not."""
    waiting = path.split(b"/")[::-1]
    here: list[bytes] = []
    followed = 0
    while waiting:
        part = waiting.pop()
        if part in (b"", b"."):
            continue
        if part == b"..":
            if not here:
                return True
            here.pop()
            continue
        target = links.get(b"/".join([*here, part]))
        if target is None:
            here.append(part)
            continue
        followed += 1
        if followed > _MOST_LINKS or target.startswith(b"/") or not target or b"\0" in target:
            return True
        waiting.extend(target.split(b"/")[::-1])
    return False


def export_folder(repo: Path, commit: CommitId, into: Path) -> None:
    """Write a kit's commit into a folder of this process's user, 0700; once there, it stays.

    Raises:
        KitError: the tree can't be laid out; the kit's author can mend that.
        InfrastructureError: the commit is not in the repository.
    """
    if into.is_dir():
        return
    try:
        entries = _kit_entries(repo, commit)
    except SourceRefused as refused:
        raise KitError(f"the kit can't be exported: {refused}") from None
    into.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with tempfile.TemporaryDirectory(prefix=".export-", dir=into.parent) as made:
        whole = Path(made) / "kit"
        whole.mkdir(mode=0o700)
        write_entries(whole, entries)
        whole.rename(into)


def _kit_entries(repo: Path, commit: CommitId) -> list[Entry]:
    listed = list_tree(repo, commit, KIT_LIMITS)
    problems = tree_problems(listed, KIT_LIMITS)
    if problems:
        raise SourceRefused(problems)
    return _with_bytes(repo, listed)


def write_entries(folder: Path, entries: Iterable[Entry]) -> None:
    """Lay entries out in an empty folder: folders 0700, files 0600, or 0700 when executable."""
    links: list[Entry] = []
    for one in entries:
        path = folder / os.fsdecode(one.path)
        if one.kind == "folder":
            path.mkdir(mode=0o700)
        elif one.kind == "link":
            links.append(one)  # last, so that no file is ever written through one
        else:
            mode = 0o700 if one.kind == "executable" else 0o600
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            with os.fdopen(os.open(path, flags, mode), "wb") as file:
                file.write(one.data)
    for one in links:
        (folder / os.fsdecode(one.path)).symlink_to(os.fsdecode(one.data))


def shown_path(path: bytes) -> str:
    """Return a path as a message may repeat it: printable, one line."""
    return printable(path.decode("utf-8", "backslashreplace"))
