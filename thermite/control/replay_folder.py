"""A `replay` backend's local folder becomes a commit that travels with the project.

Source: the reference page "Contract", `replay` backend.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from thermite.control.sources import Source
from thermite.errors import ContractError, KitError
from thermite.kit.folder import commit_of_folder
from thermite.kit.git import git
from thermite.schema.ids import CommitId, is_commit_id, is_entry_name

_WHO: Final = b"thermite <thermite@localhost> 0 +0000"  # as for every folder that is committed
_UNNAMED: Final = "replay"
_WORKERS: Final = ("agents", "workers")


def replay_options(fields: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the options of a contract's replay workers, or None when there are none such."""
    node: Any = fields
    for name in _WORKERS:
        node = node.get(name) if isinstance(node, dict) else None
    if not isinstance(node, dict) or node.get("backend") != "replay":
        return None
    options = node.get("options")
    return options if isinstance(options, dict) and isinstance(options.get("from"), str) else None


def commit_replay_folder(options: dict[str, Any], beside: Path, store: Path) -> Source | None:
    """Commit the folder that `from` names and write `<commit>:<folder>` into the options.

    Args:
        options: the workers' options; changed in place.
        beside: the contract's folder, from which a relative path counts.
        store: a bare repository, made if need be, that takes the commit.

    Returns:
        The commit, or None when `from` names a commit or a place on the rig already.

    Raises:
        ContractError: a relative path with no folder there, one that no commit can hold, or one
            that holds nothing to offer.
    """
    given: str = options["from"]
    if is_commit_id(given.partition(":")[0]):
        return None
    folder = (beside / given).absolute()
    if not folder.is_dir():
        if Path(given).is_absolute():
            return None  # a path on the rig, which its rig.toml must allow
        raise ContractError(f"agents.workers.options.from is {given!r}, and {folder} is no folder")
    _check_proposals(folder)
    name = folder.resolve().name or _UNNAMED
    try:
        commit = _below(store, name, commit_of_folder(store, folder))
    except KitError as error:
        raise ContractError(f"agents.workers.options.from: {error}") from None
    options["from"] = f"{commit}:{name}"
    return Source(store, commit)


def _check_proposals(folder: Path) -> None:
    """Refuse a folder that a rig would refuse: nothing in it is a proposal, or one has no name.

    Raises:
        ContractError: by the contract's author.
    """
    named = {name for one in folder.iterdir() if (name := _proposal(one)) is not None}
    if not named:
        raise ContractError(
            f"agents.workers.options.from: {folder} holds no proposal: put <name>.patch there, or"
            " <name>/ with change.patch, or with files/ and delete.txt"
        )
    odd = sorted(name for name in named if not is_entry_name(name))
    if odd:
        raise ContractError(
            f"agents.workers.options.from: {odd[0]!a} in {folder} is no name of a proposal: rename"
            " it, to A-Z, a-z, 0-9, '.', '_' and '-', at most 128, a letter or digit first"
        )


def _proposal(path: Path) -> str | None:
    if path.is_dir():
        parts = (path / "change.patch", path / "delete.txt")
        offers = any(one.is_file() for one in parts) or (path / "files").is_dir()
        return path.name if offers else None
    return path.name.removesuffix(".patch") if path.name.endswith(".patch") else None


def _below(store: Path, name: str, content: CommitId) -> CommitId:
    """Return a commit whose tree holds the content as a folder of this name, same id anywhere."""
    tree = git(store, "rev-parse", f"{content}^{{tree}}").strip()
    line = b"040000 tree %s\t%s\0" % (tree, os.fsencode(name))
    above = git(store, "mktree", "-z", stdin=line).strip()
    text = b"tree %s\nauthor %s\ncommitter %s\n\nA replay folder as it stands\n" % (
        above,
        _WHO,
        _WHO,
    )
    made = git(store, "hash-object", "-t", "commit", "-w", "--stdin", stdin=text)
    commit = CommitId(made.decode("ascii").strip())
    git(store, "update-ref", "refs/thermite/replay", commit)
    return commit
