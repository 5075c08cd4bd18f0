"""An assignment from a contract's file to the rig's inbox, in two steps.

`prepare` finds, completes and checks everything and sends nothing; `send` signs and drops.
"""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from thermite.command.instant import write_instant
from thermite.command.keyring import SigningKey
from thermite.control.bundles import Package, bundle_parcel, model_package
from thermite.control.complete import Completed, Wanted, complete
from thermite.control.contract_file import ContractFile
from thermite.control.drop import drop_bytes, drop_file, order_name
from thermite.control.forecast import Forecast, expectations, forecast
from thermite.control.home import ControlHome
from thermite.control.order import Order, assign_body, sign_order
from thermite.control.pointers import pointer_warnings
from thermite.control.receipts import SentOrder, after, keep_checkpoints, note_sent
from thermite.control.rigs import KnownRig, known_rig, refreshed
from thermite.control.settings import (
    Settings,
    check_access,
    check_servers,
    providers,
    read_settings,
)
from thermite.control.sources import is_pinned, note_sent_kit, shadow_warnings
from thermite.control.uncommitted import uncommitted_warnings
from thermite.errors import UnreachableError
from thermite.kit.fit import fit_warnings
from thermite.schema.contract import McpServer
from thermite.schema.ids import Sha256, is_sha256


@dataclass(frozen=True)
class Prepared:
    """An assignment that could be signed now.

    expect: what to expect of it, sentence by sentence; warnings: what may surprise.
    """

    rig: KnownRig
    completed: Completed
    packages: tuple[Package, ...]
    servers: list[McpServer]
    settings: Settings
    cost: Forecast | None
    expect: list[str]
    warnings: list[str]


@contextmanager
def prepare(
    home: ControlHome,
    file: ContractFile,
    *,
    rig_name: str,
    project: str | None,
    kit: str | None,
    models: Sequence[Path] = (),
    kit_source: str | None = None,
    access: str | None = None,
) -> Iterator[Prepared]:
    """Yield a whole, checked assignment; its bundles lie in a folder that goes when it ends.

    Args:
        home: control's folder.
        file: the contract as it was written.
        rig_name: a rig that control knows.
        project: path or address of the project, None for the repository around the file.
        kit: path, address or kept name of the kit.
        models: model files to send along.
        kit_source: an address, or `control`, from which the rig itself fetches the kit.
        access: the rig's access to that address.

    Raises:
        ContractError: the contract has problems, or the kit does not fit it.
        KitError: the kit has problems, or names an MCP server that Settings lacks.
        UsageError: something that is named is not there.
    """
    home.make()
    rig, warnings = _rig(home, rig_name)
    is_heard = not warnings
    with ExitStack() as until:
        scratch = Path(until.enter_context(tempfile.TemporaryDirectory(prefix="thermite-assign-")))
        files = [model_package(path) for path in models]
        hashes = tuple(Sha256(package.line.sha256 or "") for package in files)
        whole = complete(
            home,
            file,
            Wanted(project, kit, hashes, kit_source, access),
            target=rig.target,
            scratch=scratch,
            until=until,
        )
        settings = read_settings(home)
        servers = _servers(whole)
        check_servers(settings, servers)
        for parcel in whole.parcels:
            check_access(settings, parcel.fetched)
        judged_by = whole.contract.project.kit
        if kit is not None and judged_by is not None:
            warnings += shadow_warnings(home, kit, judged_by.commit)
        if whole.kit is not None:
            warnings += fit_warnings(whole.kit, whole.contract)
        warnings += _uncommitted_warnings(file, whole)
        warnings += _model_warnings(whole, hashes) + _pointer_warnings(whole)
        bundles = [bundle_parcel(parcel, scratch) for parcel in whole.parcels]
        cost = forecast(whole.contract, whole.kit, rig) if whole.kit else None
        yield Prepared(
            rig=rig,
            completed=whole,
            packages=(*bundles, *files),
            servers=servers,
            settings=settings,
            cost=cost,
            expect=expectations(rig, whole.contract, cost, is_heard=is_heard),
            warnings=warnings,
        )


def send(home: ControlHome, prepared: Prepared, key: SigningKey) -> tuple[Order, str]:
    """Sign the assignment and put it into the rig's inbox: bundles first, the order last.

    Returns:
        The order, and the name of its file in the inbox.

    Raises:
        UnreachableError: the inbox is not there, or can't be written.
        UsageError: no room in it, or larger than a rig reads.
    """
    body = assign_body(
        prepared.completed.raw,
        [package.line for package in prepared.packages],
        prepared.servers,
        providers(prepared.settings, prepared.servers),
    )
    rig = prepared.rig
    order = sign_order(
        "assign_campaign",
        body,
        rig=rig,
        keys=[key],
        after=after(home, rig),
        now=datetime.now(UTC),
    )
    for package in prepared.packages:
        if package.file is not None:
            drop_file(Path(rig.inbox), package.name, package.file)
    for parcel in prepared.completed.parcels:
        if parcel.kind == "kit":  # before the order: nothing may fail behind it
            note_sent_kit(home, parcel.source)
    return order, send_order(home, rig, order)


def send_order(home: ControlHome, rig: KnownRig, order: Order) -> str:
    """Put an order into the rig's inbox and remember it; return the file's name there."""
    name = order_name()
    drop_bytes(Path(rig.inbox), name, order.raw)
    at = write_instant(datetime.now(UTC).replace(microsecond=0))
    sent = SentOrder(
        digest=order.digest, id=order.id, type=order.type, at=at, file=name, after=order.after
    )
    note_sent(home, rig, sent)
    return name


def _rig(home: ControlHome, name: str) -> tuple[KnownRig, list[str]]:
    """Return the rig as it speaks of itself now, or as control knew it, with a warning."""
    try:
        rig, card = refreshed(home, name)
    except UnreachableError as error:
        return known_rig(home, name), [f"{error} What it last said of itself is taken"]
    keep_checkpoints(home, rig, [card.checkpoint] if card.checkpoint else [])
    return rig, []


def _servers(whole: Completed) -> list[McpServer]:
    """Return the campaign's MCP servers: the kit's, or a research contract's own."""
    if whole.kit is not None:
        return list(whole.kit.mcp_servers)
    return list(whole.contract.mcp_servers or [])


def _model_warnings(whole: Completed, sent: tuple[Sha256, ...]) -> list[str]:
    return [
        f"the contract names model {model}, and no --model file has it: it must be on the rig"
        for model in whole.contract.models
        if is_sha256(model) and model not in sent
    ]


def _uncommitted_warnings(file: ContractFile, whole: Completed) -> list[str]:
    """Return a warning for project and kit where the contract names no full id of a commit."""
    project = file.fields["project"]
    kit = project.get("kit") or {}
    named = {"project": project.get("commit"), "kit": kit.get("commit")}
    sources = {parcel.kind: parcel.source for parcel in reversed(whole.parcels)}
    return [
        warning
        for kind, source in sorted(sources.items(), reverse=True)
        if not is_pinned(named[kind])
        for warning in uncommitted_warnings(kind, source.repo, file.path)
    ]


def _pointer_warnings(whole: Completed) -> list[str]:
    return [
        warning
        for parcel in whole.parcels
        for warning in pointer_warnings(parcel.kind, parcel.source.repo, parcel.source.commit)
    ]
