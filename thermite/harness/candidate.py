"""What a worker left -> a candidate commit, by git plumbing in the rig's private repository.

Git never runs in a lane's folder and no filter, hook or index of anybody else takes part.
A change that is not allowed is refused before anything is built, naming the paths. Source:
agents and control, A3; the reference page "Contract", `project.editable`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from thermite.kit.git import GitError, git
from thermite.schema.stage import Entry

IDENTITY: Final = "thermite <thermite@localhost>"
DEL: Final = 0x7F
"""The first byte that is no printable ASCII."""
LINK, GITLINK, GONE = "120000", "160000", "000000"


@dataclass(frozen=True)
class Candidate:
    """A commit that may be built; paths: those that differ from the base."""

    commit: str
    tree: str
    paths: list[str]


@dataclass(frozen=True)
class Refused:
    """Why no candidate was made of a change, and which paths are to blame."""

    reason: str
    paths: list[str]


def commit_files(
    repo: Path,
    base: str,
    files: Mapping[str, Entry],
    deletes: list[str],
    *,
    ref: str,
    at_s: int,
) -> str:
    """Commit files laid over a base, and return the new commit's id.

    Args:
        ref: the reference that keeps it; at_s: its date, s since 1970.
    """
    head = f"commit {ref}\nauthor {IDENTITY} {at_s} +0000\ncommitter {IDENTITY} {at_s} +0000\n"
    message = ref.encode()
    parts = [head.encode(), b"data %d\n%s\nfrom %s\n" % (len(message), message, base.encode())]
    parts += [b"D " + _quoted(path) + b"\n" for path in deletes]
    for path, entry in files.items():
        mode = {"file": b"100644", "executable": b"100755", "link": b"120000"}[entry.kind]
        parts.append(b"M %s inline %s\ndata %d\n" % (mode, _quoted(path), len(entry.data)))
        parts.append(entry.data + b"\n")
    git(repo, "fast-import", "--quiet", "--force", "--date-format=raw", stdin=b"".join(parts))
    return git(repo, "rev-parse", "--verify", f"{ref}^{{commit}}").decode().strip()


def _quoted(path: str) -> bytes:
    raw = path.encode(errors="surrogateescape")
    out = b"".join(bytes((c,)) if chr(c).isalnum() and c < DEL else rb"\%03o" % c for c in raw)
    return b'"' + out + b'"'


def commit_patch(repo: Path, base: str, patch: bytes, *, ref: str, at_s: int) -> str | None:
    """Commit a patch on a base, and return the new commit's id, or None if it does not apply."""
    with TemporaryDirectory(dir=repo) as folder:
        env = {"GIT_INDEX_FILE": f"{folder}/index"}
        git(repo, "read-tree", base, env=env)
        try:
            git(repo, "apply", "--cached", "--whitespace=nowarn", "-", env=env, stdin=patch)
        except GitError:
            return None
        tree = git(repo, "write-tree", env=env).decode().strip()
    when = f"@{at_s} +0000"
    env = {
        "GIT_AUTHOR_NAME": "thermite",
        "GIT_AUTHOR_EMAIL": "thermite@localhost",
        "GIT_COMMITTER_NAME": "thermite",
        "GIT_COMMITTER_EMAIL": "thermite@localhost",
        "GIT_AUTHOR_DATE": when,
        "GIT_COMMITTER_DATE": when,
    }
    made = git(repo, "commit-tree", tree, "-p", base, "-m", ref, env=env).decode().strip()
    git(repo, "update-ref", ref, made)
    return made


def inspect(
    repo: Path, base: str, commit: str, editable: list[str], *, most_mib: int
) -> Candidate | Refused | None:
    """Return the candidate, why it is refused, or None when it changes nothing.

    Args:
        editable: gitignore-style patterns that a changed path must match; most_mib: the
            largest tree, MiB.
    """
    tree = git(repo, "rev-parse", "--verify", f"{commit}^{{tree}}").decode().strip()
    changed = _changed(repo, base, commit)
    if not changed:
        return None
    refused = _shape_refusal(changed) or _editable_refusal(repo, changed, editable)
    if refused is not None:
        return refused
    size = _tree_bytes(repo, commit)
    if size > most_mib << 20:
        return Refused(f"the tree has {size} bytes: budget.candidate_mib allows {most_mib} MiB", [])
    return Candidate(commit, tree, sorted(changed))


def _changed(repo: Path, base: str, commit: str) -> dict[str, str]:
    """Return path -> new mode (000000 when it is gone) of every path that differs."""
    raw = git(repo, "diff-tree", "-r", "-z", "--no-renames", "--raw", base, commit)
    fields = raw.decode(errors="surrogateescape").split("\0")
    return {path: meta.split(" ")[1] for meta, path in zip(fields[::2], fields[1::2], strict=False)}


def _shape_refusal(changed: Mapping[str, str]) -> Refused | None:
    for reason, paths in (
        ("a changed path is a symbolic link", [p for p, m in changed.items() if m == LINK]),
        ("a changed path is a submodule", [p for p, m in changed.items() if m == GITLINK]),
        ("a path holds .git or .kit, or climbs", [p for p in changed if _reserved(p)]),
        ("a path holds a line break", [p for p in changed if "\n" in p or "\r" in p]),
    ):
        if paths:
            return Refused(reason, sorted(paths))
    return None


def _reserved(path: str) -> bool:
    parts = path.lower().split("/")
    return ".." in parts or ".git" in parts or parts[0] == ".kit"


def _editable_refusal(
    repo: Path, changed: Mapping[str, str], editable: list[str]
) -> Refused | None:
    # A path that is gone and one that came may be file and folder of one name: two looks.
    gone = [path for path, mode in changed.items() if mode == GONE]
    here = [path for path, mode in changed.items() if mode != GONE]
    allowed = _matching(repo, gone, editable) | _matching(repo, here, editable)
    outside = sorted(set(changed) - allowed)
    if not outside:
        return None
    return Refused("changed outside project.editable", outside)


def _matching(repo: Path, paths: list[str], patterns: list[str]) -> set[str]:
    """Return the paths that gitignore-style patterns match, as git itself decides it."""
    with TemporaryDirectory(dir=repo) as folder:
        work = Path(folder) / "empty"
        work.mkdir()
        listed = Path(folder) / "patterns"
        listed.write_text("".join(f"{p}\n" for p in patterns), encoding="utf-8")
        env = {"GIT_INDEX_FILE": f"{folder}/index", "GIT_WORK_TREE": str(work)}
        blob = git(repo, "hash-object", "-w", "--stdin", stdin=b"").decode().strip()
        rows = "".join(f"100644 {blob}\t{path}\0" for path in paths)
        raw = rows.encode(errors="surrogateescape")
        git(repo, "update-index", "-z", "--index-info", env=env, stdin=raw)
        found = git(repo, "ls-files", "-z", "-c", "-i", "-X", str(listed), env=env)
    return set(found.decode(errors="surrogateescape").split("\0")) - {""}


def _tree_bytes(repo: Path, commit: str) -> int:
    raw = git(repo, "ls-tree", "-r", "-l", "-z", commit).split(b"\0")
    sizes = (row.split(b"\t", 1)[0].split() for row in raw if row)
    return sum(int(fields[3]) for fields in sizes if fields[3] != b"-")
