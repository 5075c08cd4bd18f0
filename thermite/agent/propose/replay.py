"""The `replay` backend: known changes, offered in the order of their names.

An entry is `<name>.patch` in git's format, or a folder `<name>/` with `change.patch`, or
with `files/` that are laid over the base and `delete.txt` that names paths to remove, one a
line. What else such a folder holds is passed over. Source: the reference page "Contract",
`replay` backend; kit requirements, 20.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from thermite.errors import ContractError
from thermite.schema.ids import is_commit_id, is_entry_name
from thermite.schema.stage import Entry

MAX_ENTRIES: Final = 10_000
"""Most entries of a replay folder (our figure; a campaign has 50 attempts by default)."""


@dataclass(frozen=True)
class Proposal:
    """One change: either a patch, or files by path and paths to delete."""

    name: str
    patch: bytes | None = None
    files: dict[str, Entry] = field(default_factory=dict)
    deletes: list[str] = field(default_factory=list)


def source_of(options: dict[str, object]) -> tuple[str, str]:
    """Return commit and folder of `options.from`, which reads `<commit>:<folder>`.

    Raises:
        ContractError: another form.
    """
    text = options.get("from")
    commit, colon, folder = str(text).partition(":")
    if not colon or not is_commit_id(commit) or _leaves(folder):
        raise ContractError(
            f"agents.workers.options.from is {text!r}: a replay backend takes <commit>:<folder>,"
            " which thermite assign makes from a local folder"
        )
    return commit, folder.strip("/")


def _leaves(folder: str) -> bool:
    return folder.startswith("/") or ".." in folder.split("/")


def proposals(entries: Iterable[Entry], folder: str) -> list[Proposal]:
    """Return the proposals of a folder of a tree, in name order.

    Raises:
        ContractError: no proposal, too many, or a name that can't be shown.
    """
    by_name: dict[str, dict[str, Entry]] = {}
    prefix = f"{folder}/" if folder else ""
    for entry in entries:
        path = entry.path.decode(errors="surrogateescape")
        if entry.kind == "folder" or not path.startswith(prefix):
            continue
        name, _, rest = path.removeprefix(prefix).partition("/")
        by_name.setdefault(name, {})[rest] = entry
    found = [p for name in sorted(by_name) if (p := _proposal(name, by_name[name])) is not None]
    if not found or len(found) > MAX_ENTRIES:
        raise ContractError(
            f"the replay folder {folder!r} holds {len(found)} proposals:"
            f" it takes 1 to {MAX_ENTRIES}"
        )
    return found


def _proposal(name: str, parts: dict[str, Entry]) -> Proposal | None:
    if "" in parts:
        stem = name.removesuffix(".patch")
        return _named(stem, patch=parts[""].data) if stem != name else None
    if "change.patch" in parts:
        return _named(name, patch=parts["change.patch"].data)
    files = {p.removeprefix("files/"): e for p, e in parts.items() if p.startswith("files/")}
    deletes = parts.get("delete.txt")
    gone = deletes.data.decode(errors="replace").splitlines() if deletes is not None else []
    if not files and not gone:
        return None
    return _named(name, files=files, deletes=[line.strip() for line in gone if line.strip()])


def _named(
    name: str,
    patch: bytes | None = None,
    files: dict[str, Entry] | None = None,
    deletes: list[str] | None = None,
) -> Proposal:
    if not is_entry_name(name):
        raise ContractError(f"the replay entry {name!r} has a name outside A-Z a-z 0-9 . _ -")
    return Proposal(name, patch, files or {}, deletes or [])
