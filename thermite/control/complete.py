"""A contract becomes whole: project and kit by full ids, everything held against the kit.

What is signed is the completed contract, and only that is hashed. Nothing is sent here.
Source: the reference page "Contract", Completing a contract.
"""

import hashlib
from contextlib import ExitStack
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from thermite.control.contract_file import ContractFile, encoded
from thermite.control.home import ControlHome
from thermite.control.replay_folder import commit_replay_folder, replay_options
from thermite.control.sources import (
    KitSource,
    Source,
    fetched,
    is_address,
    is_pinned,
    kit_source,
    project_source,
)
from thermite.errors import ContractError, UsageError
from thermite.kit.fit import DOES_NOT_FIT, fit_problems
from thermite.schema import command
from thermite.schema.contract import Contract
from thermite.schema.contract_text import contract_of, read_contract
from thermite.schema.ids import Sha256
from thermite.schema.kit import Kit, Problem

OF_CONTROL: Final = "control"
"""Says that a rig fetches the kit from its `control_url`."""


@dataclass(frozen=True)
class Parcel:
    """A commit that must reach the rig: what it is there, and where it lies here.

    fetched: where the rig itself fetches it, None where a bundle is sent.
    """

    kind: Literal["kit", "project"]
    repo_id: str
    source: Source
    fetched: command.Source | None = None


@dataclass(frozen=True)
class Completed:
    """A whole contract and what belongs to it; raw: its bytes as they are signed."""

    contract: Contract
    raw: bytes
    kit: Kit | None
    parcels: tuple[Parcel, ...]

    @property
    def sha256(self) -> Sha256:
        """The contract's hash, as the ledger will have it."""
        return Sha256(hashlib.sha256(self.raw).hexdigest())


@dataclass(frozen=True)
class Wanted:
    """What the command line adds to a contract.

    project: path or address, None for the repository around the contract's file; kit: path,
    address or kept name; models: SHA-256 of the model files that are sent along; kit_source:
    an address, or `control`, from which the rig itself fetches the kit; access: the rig's
    access to it.
    """

    project: str | None
    kit: str | None
    models: tuple[Sha256, ...] = ()
    kit_source: str | None = None
    access: str | None = None


def complete(
    home: ControlHome,
    file: ContractFile,
    wanted: Wanted,
    *,
    target: str,
    scratch: Path,
    until: ExitStack,
) -> Completed:
    """Return the completed contract.

    Args:
        home: control's folder.
        file: the contract as it was written.
        wanted: what the command line adds.
        target: the rig's target.
        scratch: a private folder for what is committed and fetched on the way.
        until: keeps fetched repositories until it is closed.

    Raises:
        ContractError: all problems of the contract, or all places where the kit does not fit.
        KitError: the kit's manifest has problems.
        UsageError: project or kit can't be found at the revisions that are named.
    """
    _checked(contract_of(file.fields, completed=False))
    fields = deepcopy(file.fields)
    project = fields["project"]
    at = _project(file, wanted, project["commit"], scratch, until)
    project["commit"] = at.commit
    parcels = []
    kit = _kit(home, fields, project, wanted)
    if kit is not None:
        project["kit"] = {"repo": _kit_repo(project, kit), "commit": kit.at.commit}
        parcels.append(Parcel("kit", project["kit"]["repo"], kit.at, _fetched(wanted, kit)))
    parcels.append(Parcel("project", project["repo"], at))
    options = replay_options(fields)
    replay = options and commit_replay_folder(options, file.path.parent, scratch / "replay.git")
    if replay:
        parcels.append(Parcel("project", project["repo"], replay))
    _add_models(fields, wanted.models)
    raw = encoded(fields)
    contract = _checked(read_contract(raw))
    if kit is not None:
        _check_fit(kit.kit, contract, target)
    return Completed(contract, raw, kit.kit if kit else None, tuple(parcels))


def _project(
    file: ContractFile, wanted: Wanted, revision: str, scratch: Path, until: ExitStack
) -> Source:
    if wanted.project is not None and is_address(wanted.project):
        return until.enter_context(fetched(wanted.project, revision, scratch))
    where = Path(wanted.project) if wanted.project is not None else file.path.absolute().parent
    if not where.is_dir():
        raise UsageError(f"there is no folder {where}: name the project's repository")
    return project_source(where, revision)


def _kit(
    home: ControlHome, fields: dict[str, Any], project: dict[str, Any], wanted: Wanted
) -> KitSource | None:
    if fields.get("campaign") == "research":
        if wanted.kit is not None:
            raise ContractError("a research contract has no kit: leave --kit out")
        return None
    if wanted.kit is None:
        raise UsageError(
            "which kit judges this campaign? give --kit with a path, an address or a kept name"
        )
    commit = (project.get("kit") or {}).get("commit")
    found = kit_source(home, wanted.kit, commit)
    if is_pinned(commit) and commit != found.at.commit:
        raise ContractError(
            f"project.kit.commit is {commit}, and the kit is at {found.at.commit}: take the commit"
            " out of the contract, or give the kit as it was"
        )
    return found


def _fetched(wanted: Wanted, kit: KitSource) -> command.Source | None:
    """Return where the rig fetches the kit, when it is told to.

    Raises:
        UsageError: no address, or an access without one.
    """
    if wanted.kit_source is None:
        if wanted.access is not None:
            raise UsageError("--access is for --kit-source: without one the kit is sent")
        return None
    try:
        if wanted.kit_source == OF_CONTROL:
            return command.Source(control=f"kits/{kit.kit.name}", access=wanted.access)
        if not is_address(wanted.kit_source):
            raise UsageError(
                f"--kit-source is {wanted.kit_source[:80]!a}: give the address from which the rig"
                f" fetches the kit, or {OF_CONTROL} for its control_url"
            )
        return command.Source(git=wanted.kit_source, access=wanted.access)
    except ValueError as error:
        raise UsageError(f"--kit-source can't be signed: {error}") from None


def _kit_repo(project: dict[str, Any], kit: KitSource) -> str:
    named = project.get("kit") or {}
    return str(named.get("repo", kit.kit.name))


def _add_models(fields: dict[str, Any], models: tuple[Sha256, ...]) -> None:
    if models:
        known = fields.setdefault("models", [])
        known += [model for model in models if model not in known]


def _checked(found: Contract | list[Problem]) -> Contract:
    if isinstance(found, Contract):
        return found
    raise ContractError("; ".join(str(problem) for problem in found))


def _check_fit(kit: Kit, contract: Contract, target: str) -> None:
    problems = fit_problems(kit, contract, target)
    if problems:
        raise ContractError(DOES_NOT_FIT + "; ".join(problems))
