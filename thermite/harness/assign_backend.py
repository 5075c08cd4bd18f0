"""Whether this version can run a contract's backend, asked before the assignment is created.

Source: the reference page "Contract", `agents.workers` and the `replay` backend.
"""

from collections.abc import Callable, Iterable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import msgspec

from thermite.agent.propose.replay import proposals, source_of
from thermite.errors import CommandError, ContractError
from thermite.harness.gateway_slots import SLOT as GATEWAYS
from thermite.harness.worker import MCP_URL, check_options
from thermite.kit.bundle import has_commit
from thermite.kit.export import SourceRefused, tree_entries
from thermite.rig.stages import reaches_gateway
from thermite.schema.access import MOST_HEADERS, MOST_URL, header_problem
from thermite.schema.command import AssignBody, McpProvider
from thermite.schema.contract import Contract
from thermite.schema.event import IsolationProbe
from thermite.schema.ids import CommitId
from thermite.schema.rig_settings import McpProgram
from thermite.schema.stage import IsolationRecord

BACKENDS: Final = ("replay", "command")
"""Backends of this version."""
_OPTIONS: Final[Mapping[str, Callable[[dict[str, Any]], object]]] = {
    "replay": source_of,
    "command": check_options,
}
"""What looks at each backend's options."""
MOST_PROVIDERS: Final = 48 << 10
"""Bytes of JSON: one message to the supervisor must hold them (its limit is 64 KiB)."""
FOREIGN: Final = frozenset({"command"})
"""Backends that run what somebody else wrote (agents and control, A8)."""


def check_backend(contract: Contract) -> None:
    """Refuse a backend or options that this version can't run, as far as no import is needed.

    Raises:
        CommandError: `not_supported`, `contract_bad`.
    """
    backend = contract.agents.workers.backend
    if backend not in BACKENDS:
        raise CommandError(
            "not_supported",
            f"the contract asks for backend {backend[:64]!a}, and this version has"
            f" {' and '.join(BACKENDS)}: choose one of them, or upgrade Thermite on the rig",
        )
    try:
        _OPTIONS[backend](contract.agents.workers.options)
    except ContractError as error:
        raise CommandError("contract_bad", str(error)) from None


def check_foreign_code(contract: Contract, probe: IsolationProbe | None) -> None:
    """Refuse an agent that would be the judge's own user (agents and control, A1, Level none).

    Raises:
        CommandError: `isolation`.
    """
    backend = contract.agents.workers.backend
    level = "none" if probe is None else probe.level
    if backend in FOREIGN and level == "none" and contract.isolation != "any":
        raise CommandError(
            "isolation",
            f"backend {backend} runs foreign code, and this rig isolates with none: use sweep,"
            " evolve or replay, or set isolation to any",
        )


def check_tools(
    contract: Contract,
    body: AssignBody,
    programs: Mapping[str, McpProgram],
    slots: Iterable[str],
    isolation: IsolationRecord,
) -> None:
    """Refuse a campaign whose workers would find none of the tools that they are promised.

    Args:
        programs: the servers of the rig's owner; slots: the rig's; isolation: of its stages.

    Only a backend that runs programs calls tools; for another one there is nothing to refuse.

    Raises:
        CommandError: `mcp_servers`, `not_supported`, `isolation`.
    """
    named = [one.name for one in body.mcp_servers if "workers" in one.agents]
    workers = contract.agents.workers
    if workers.backend not in FOREIGN:
        return
    if not named:
        if any(MCP_URL in word for word in workers.options["command"]):
            raise CommandError(
                "contract_bad",
                f"agents.workers.options.command has {MCP_URL}, and the workers get no MCP server:"
                " take it out, or name a server for them",
            )
        return
    if find_spec("mcp") is None:
        raise CommandError(
            "not_supported",
            f"the workers get MCP server {named[0]}, and this rig lacks the package mcp: install"
            " thermite-rig[mcp] on the rig",
        )
    urls = {one.name: one for one in body.providers.mcp}
    for name in named:
        if name not in programs and name not in urls:
            raise CommandError(
                "mcp_servers",
                f"the workers get MCP server {name}, and nothing says where it is: give its"
                f" command in the rig's rig.toml, [mcp.{name}], or its url in Settings",
            )
        if name not in programs:
            _check_provider(urls[name])
    if not any(name.startswith(GATEWAYS) for name in slots):
        raise CommandError(
            "not_supported",
            f"the workers get MCP server {named[0]}, and this rig has no slot for a gateway: set"
            " gateways = 1 under [slots] in rig.toml",
        )
    if not reaches_gateway(isolation):
        raise CommandError(
            "isolation",
            f"the workers get MCP server {named[0]}, and at level {isolation.level} this"
            " rig can't let them to it and to nothing else: it takes Landlock 4 (Linux 6.7) or"
            " namespaces",
        )


def called_servers(
    contract: Contract, body: AssignBody, programs: Mapping[str, McpProgram]
) -> list[McpProvider]:
    """Return the servers with an address that a campaign's gateway would call.

    Raises:
        CommandError: `mcp_servers`: one whose headers can't be sent.
    """
    if contract.agents.workers.backend not in FOREIGN:
        return []
    named = {one.name for one in body.mcp_servers if "workers" in one.agents} - set(programs)
    found = list({one.name: one for one in body.providers.mcp if one.name in named}.values())
    for one in found:
        _check_provider(one)
    if (size := len(msgspec.json.encode(found))) > MOST_PROVIDERS:
        raise CommandError(
            "mcp_servers",
            f"the addresses and headers of the MCP servers take {size} bytes: at most"
            f" {MOST_PROVIDERS} are taken",
        )
    return found


def _check_provider(server: McpProvider) -> None:
    """Refuse an address or headers that Settings would not have let through."""
    problems = [header_problem(*pair) for pair in server.headers.items()]
    length, count = len(server.url), len(problems)
    if count > MOST_HEADERS or length > MOST_URL:
        most = f"at most {MOST_URL} and {MOST_HEADERS} are taken"
        problems = [f"its address has {length} characters and {count} headers: {most}"]
    for problem in filter(None, problems):
        raise CommandError("mcp_servers", f"MCP server {server.name}: {problem}")


def offered_commit(contract: Contract) -> str | None:
    """Return the commit of the project's repository that a replay backend offers from."""
    workers = contract.agents.workers
    return source_of(workers.options)[0] if workers.backend == "replay" else None


def check_offers(contract: Contract, repo: Path) -> None:
    """Refuse a replay whose folder is not on the rig or holds nothing to offer.

    Args:
        repo: the kept repository of the project.

    Raises:
        CommandError: `commit_missing`, `contract_bad`.
    """
    if contract.agents.workers.backend != "replay":
        return
    commit, folder = source_of(contract.agents.workers.options)
    if not has_commit(repo, CommitId(commit)):
        raise CommandError(
            "commit_missing",
            f"the replay folder's commit {commit} is not on this rig: send its bundle along",
        )
    try:
        proposals(tree_entries(repo, CommitId(commit)), folder)
    except (ContractError, SourceRefused) as error:
        raise CommandError("contract_bad", f"agents.workers.options.from: {error}") from None
