"""`assign_campaign`: what must be true before an assignment is created, and its transaction.

Seed 002's texts stand to the letter. Nothing is created until everything holds: no event, no
folder. Source: Kit manifest, "MCP servers" and "The kit against the contract"; ledger and
signing, 3.9, steps 13 and 14; judging, 3.1 for the coin.
"""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import msgspec

from thermite.command.verify import Command
from thermite.errors import CommandError, KitError
from thermite.harness.assign_backend import (
    check_backend,
    check_foreign_code,
    check_offers,
    offered_commit,
)
from thermite.harness.book import Draft
from thermite.harness.decide import accepted, draft
from thermite.harness.folder import RigFolder
from thermite.judge.verdict.coin import commitment, order_seed
from thermite.judge.verdict.params import goal_rules
from thermite.kit.bundle import has_commit
from thermite.kit.export import export_folder
from thermite.kit.fit import fit_problems
from thermite.kit.manifest import load_kit
from thermite.schema.command import AssignBody, KitBundle, ModelFile, ProjectBundle
from thermite.schema.contract import Contract, McpServer, RepoAt, WantedIsolation
from thermite.schema.contract_text import read_contract
from thermite.schema.event import (
    AssignmentCreated,
    ImportCompleted,
    IsolationProbe,
    McpServers,
)
from thermite.schema.goal_rules import GoalRules
from thermite.schema.ids import CommitId
from thermite.schema.kit import Kit
from thermite.schema.protection import is_protected
from thermite.schema.strict import Strict

RUNS: Final = frozenset({"hill_climb", "goal", "research"})
"""Kinds of campaign that this version runs."""
MOST_GOAL_BYTES: Final = 64 << 10
"""Of what the kit says of the goals: with a contract of 128 KiB it must fit an event's 256 KiB."""
_ENOUGH: Final[dict[WantedIsolation, frozenset[str]]] = {
    "users": frozenset({"users", "users+namespaces"}),
    "users+namespaces": frozenset({"users+namespaces"}),
}
"""isolation, 4.2; `protected` asks the canaries, `any` asks nothing."""


def wanted(body: AssignBody, probe: IsolationProbe | None) -> Contract:
    """Return the contract, checked as far as that needs no import.

    Raises:
        CommandError: `contract_bad`, `not_supported`, `isolation` or `import_mismatch`.
    """
    contract = read_contract(bytes(body.contract))
    if not isinstance(contract, Contract):
        raise CommandError(
            "contract_bad", f"the contract can't be used: {'; '.join(map(str, contract))}"
        )
    if contract.campaign not in RUNS:
        raise CommandError(
            "not_supported",
            f"this version runs {', '.join(sorted(RUNS))} campaigns, and the contract asks for"
            f" {contract.campaign}: upgrade Thermite on the rig",
        )
    check_backend(contract)
    _check_isolation(contract.isolation, probe)
    check_foreign_code(contract, probe)
    _check_imports(body, contract)
    return contract


def check_kit(
    body: AssignBody, contract: Contract, folder: RigFolder, target: str
) -> GoalRules | None:
    """Refuse an assignment whose kit, project or models do not fit, all of them imported.

    Returns what the kit says of the contract's goals, None for a hill climb.

    Args:
        target: what this rig measures on.

    Raises:
        CommandError: `commit_missing`, `contract_bad`, `model_missing`, `kit_bad`, `kit_misfit`,
            `mcp_servers`.
    """
    project = RepoAt(repo=contract.project.repo, commit=contract.project.commit)
    project_repo = folder.project_repo(project.repo)
    _check_commit(project_repo, "project", project)
    check_offers(contract, project_repo)
    for model in contract.models:
        if not (folder.models / model).is_file():
            raise CommandError(
                "model_missing",
                f"the contract names model file {model}, which is not on this rig: send it along"
                " (thermite assign --model FILE)",
            )
    if contract.campaign == "research":
        _check_research_servers(contract, body)
        return None
    wanted_kit = contract.project.kit
    if wanted_kit is None:
        raise CommandError("contract_bad", "project.kit is missing: name the kit")
    _check_commit(folder.kit_repo(wanted_kit.repo), "kit", wanted_kit)
    kit = _load(folder, wanted_kit)
    problems = fit_problems(kit, contract, target)
    if problems:
        raise CommandError(
            "kit_misfit", f"the kit does not fit the contract: {'; '.join(problems)}"
        )
    check_servers(kit.mcp_servers, body.mcp_servers)
    return _goal_rules(contract, kit) if contract.campaign == "goal" else None


def _goal_rules(contract: Contract, kit: Kit) -> GoalRules:
    rules = goal_rules(contract, kit)
    size = len(msgspec.json.encode(rules))
    if size > MOST_GOAL_BYTES:
        raise CommandError(
            "kit_misfit",
            f"the kit's verifiers of these goals take {size} bytes in the ledger, and it keeps at"
            f" most {MOST_GOAL_BYTES}: name fewer, or give them fewer cells",
        )
    return rules


def _check_research_servers(contract: Contract, body: AssignBody) -> None:
    if _as_set(contract.mcp_servers or []) != _as_set(body.mcp_servers):
        raise CommandError(
            "mcp_servers",
            f"the contract names the MCP servers {_list(contract.mcp_servers or [], in_full=True)},"
            f" and the assignment names {_list(body.mcp_servers, in_full=True)}: sign it again"
            " with thermite assign, which sends the contract's servers",
        )


def check_servers(named: Sequence[McpServer], assigned: Sequence[McpServer]) -> None:
    """Refuse an assignment whose MCP servers are not the kit's (kit requirements, D20).

    Raises:
        CommandError: `mcp_servers`, in seed 002's words.
    """
    if _as_set(named) == _as_set(assigned):
        return
    in_full = {one.name for one in named} == {one.name for one in assigned}
    raise CommandError(
        "mcp_servers",
        f"the kit names the MCP servers {_list(named, in_full=in_full)}, and the assignment names"
        f" {_list(assigned, in_full=in_full)}: start the run from control, which reads the kit's"
        " servers, or give the kit's mcp_servers in the assignment",
    )


def transaction(
    command: Command,
    body: AssignBody,
    contract: Contract,
    imports: Sequence[ImportCompleted],
    *,
    coin_key: bytes,
    goals: GoalRules | None = None,
) -> tuple[Draft, ...]:
    """Return the events of an accepted assignment, which are one transaction (step 14)."""
    seed = order_seed(coin_key, bytes.fromhex(command.digest))
    raw = bytes(body.contract)
    created = AssignmentCreated(
        contract=body.contract,
        contract_sha256=hashlib.sha256(raw).hexdigest(),
        kit=contract.project.kit,
        project=RepoAt(repo=contract.project.repo, commit=contract.project.commit),
        order_commitment=commitment(seed).hex(),
        goals=goals,
    )
    named = {one.name for one in body.mcp_servers}
    providers = [one for one in body.providers.mcp if one.name in named]
    follows: list[Strict] = [created, McpServers(servers=body.mcp_servers, providers=providers)]
    about = command.assignment
    return (
        accepted(command, about),
        *(draft(command, data, None) for data in imports),
        *(draft(command, data, about) for data in follows),
    )


def is_enough(asked: WantedIsolation, probe: IsolationProbe | None) -> bool:
    """Return whether this rig keeps stages apart as well as a contract asks (isolation, 4.2)."""
    if asked == "any":
        return True
    if probe is None:
        return False
    if asked == "protected":
        return is_protected(probe)
    return probe.level in _ENOUGH[asked]


def _check_isolation(asked: WantedIsolation, probe: IsolationProbe | None) -> None:
    if not is_enough(asked, probe):
        level = "none" if probe is None else probe.level
        raise CommandError(
            "isolation", f"this rig isolates with {level}, and the contract asks for {asked}"
        )


def check_fitness(contract: Contract, unfit: str | None) -> None:
    """Refuse an assignment while the rig's selftest says that its verdicts mean nothing.

    Args:
        unfit: `biased`, `insensitive`, or None.

    Raises:
        CommandError: `rig_unfit` (judging, 3.7).
    """
    if unfit is not None and contract.campaign != "research":
        raise CommandError(
            "rig_unfit", f"this rig's selftest is {unfit}: run thermite rig selftest"
        )


def _check_imports(body: AssignBody, contract: Contract) -> None:
    """Refuse imports that the contract does not speak of (kit requirements, K-181)."""
    project, kit = contract.project, contract.project.kit
    for number, one in enumerate(body.imports):
        match one:
            case KitBundle():
                named = "" if kit is None else f"{kit.repo} at {kit.commit}"
                got, what = f"{one.repo} at {one.commit}", "project.kit"
            case ProjectBundle():
                named, got = f"{project.repo} at {project.commit}", f"{one.repo} at {one.commit}"
                what = "project"
                if one.repo == project.repo and one.commit == offered_commit(contract):
                    continue
            case ModelFile():
                got, what = one.sha256, "models"
                named = one.sha256 if one.sha256 in contract.models else ", ".join(contract.models)
        if got != named:
            raise CommandError(
                "import_mismatch",
                f"imports[{number}] brings {got}, and the contract's {what} names"
                f" {named or 'none'}: sign the command with the imports of its contract",
            )


def _check_commit(repo: Path, what: str, at: RepoAt) -> None:
    if not has_commit(repo, CommitId(at.commit)):
        raise CommandError(
            "commit_missing",
            f"the {what}'s commit {at.commit} of {at.repo} is not on this rig: send its bundle"
            " along",
        )


def _load(folder: RigFolder, kit: RepoAt) -> Kit:
    """Read a kit's manifest from a copy that is thrown away: nothing stays of a refusal.

    Raises:
        CommandError: `kit_bad`.
    """
    with TemporaryDirectory(prefix=".kit-", dir=folder.scratch) as made:
        try:
            export_folder(folder.kit_repo(kit.repo), CommitId(kit.commit), Path(made) / "kit")
            return load_kit(Path(made) / "kit")
        except KitError as error:
            raise CommandError("kit_bad", f"kit {kit.repo} at {kit.commit}: {error}") from None


def _as_set(servers: Sequence[McpServer]) -> frozenset[object]:
    return frozenset(
        (
            one.name,
            frozenset(one.agents),
            frozenset((kind, frozenset(tools)) for kind, tools in (one.tools or {}).items()),
        )
        for one in servers
    )


def _list(servers: Sequence[McpServer], *, in_full: bool) -> str:
    if not servers:
        return "none"
    return ", ".join(_in_full(one) if in_full else one.name for one in servers)


def _in_full(one: McpServer) -> str:
    narrowed = one.tools or {}
    whole = ", ".join(kind for kind in one.agents if kind not in narrowed)
    parts = [f"{kind}: {', '.join(names)}" for kind, names in narrowed.items()]
    return f"{one.name} ({'; '.join([whole, *parts] if whole else parts)})"
