"""What follows from a verified command in the state that the ledger means: steps 8 to 12.

Pure: state, command and clock come in; drafts of events, or an import to be done first, go
out. A refusal is a `CommandError` and stops at the first check that fails.
Source: ledger and signing, 3.9 and 3.11; the reference page "Contract", Commands.
"""

import base64
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Final, TypeAlias

import msgspec

from thermite.campaign.state import Seen, State
from thermite.command.verify import Command, check_times
from thermite.errors import CommandError
from thermite.harness.book import Draft
from thermite.harness.effects import effects
from thermite.harness.inbox import import_path_problem
from thermite.schema.command import AssignBody
from thermite.schema.event import CommandAccepted
from thermite.schema.ids import is_commit_id, is_name, is_sha256
from thermite.schema.strict import Strict

MOST_IMPORTS: Final = 64
"""Most imports of one command: a kit, a project and more model files than any kit has."""


@dataclass(frozen=True)
class Duplicate:
    """This very command was accepted before."""

    seen: Seen


@dataclass(frozen=True)
class Accept:
    """All checks passed: these events are one transaction."""

    drafts: tuple[Draft, ...]


@dataclass(frozen=True)
class BringIn:
    """Steps 2 to 12 passed; what the body imports must be on the rig first (step 13)."""

    body: AssignBody


Decision: TypeAlias = Duplicate | Accept | BringIn


def decide(
    command: Command, state: State, now: datetime, *, size: int, root_at: Callable[[int], bytes]
) -> Decision:
    """Return what follows from a command.

    Args:
        command: its signature, rights and audience are checked (steps 2 to 7).
        now: read once for the whole command.
        size, root_at: the ledger's size, and its Merkle root over its first events.

    Raises:
        CommandError: the first of steps 9 to 12 that fails; `not_yet_valid` is to wait.
    """
    seen = state.commands.get(command.digest)
    if seen is not None:
        return Duplicate(seen)
    _check_id(command, state)
    check_times(command, now)
    _check_after(command, size=size, root_at=root_at)
    body = command.body
    if isinstance(body, AssignBody):
        _check_imports(body, state)
        return BringIn(body)
    about = getattr(body, "assignment", None)
    follows = [draft(command, data, about) for data in effects(command, state)]
    return Accept((accepted(command, about), *follows))


def accepted(command: Command, assignment: str | None) -> Draft:
    """Return the event that records an accepted command."""
    payload = command.payload
    data = CommandAccepted(
        sha256=command.digest,
        id=payload.id,
        type=payload.type,
        issuer=payload.issuer,
        keys=[key.id for key in command.signers],
        body=None if payload.type == "assign_campaign" else msgspec.json.decode(payload.body),
    )
    return draft(command, data, assignment)


def draft(command: Command, data: Strict, assignment: str | None) -> Draft:
    """Return an event that a command led to."""
    actor = f"control:{command.payload.issuer}"
    return Draft(data, assignment=assignment, actor=actor, command=command.digest)


def _check_id(command: Command, state: State) -> None:
    payload = command.payload
    other = state.command_ids.get((payload.issuer, payload.id))
    if other is not None:
        raise CommandError(
            "id_reused",
            f"key {payload.issuer} has given command {payload.id} before, with other content"
            f" ({other[:12]}…, this one is {command.digest[:12]}…): find out who signs with that"
            " key, and sign this command again under a new id",
        )


def _check_after(command: Command, *, size: int, root_at: Callable[[int], bytes]) -> None:
    after = command.payload.after
    if after is None:
        return
    if after.size > size:
        raise CommandError(
            "ledger_rolled_back",
            f"the sender holds a checkpoint of {after.size} events, and this ledger ends at event"
            f" {size}: events are lost; find a backup, or run thermite ledger accept-loss here",
        )
    root = base64.b64encode(root_at(after.size)).decode("ascii")
    if root != after.root:
        raise CommandError(
            "ledger_forked",
            f"the sender holds a checkpoint of {after.size} events with root {after.root[:44]!a},"
            f" and here they have root {root}: two ledgers exist under one name; run thermite audit"
            " with the sender's checkpoint, then thermite ledger accept-loss here",
        )


def _check_imports(body: AssignBody, state: State) -> None:
    if state.ledger_locked:
        raise CommandError(
            "ledger_locked",
            "a sender's checkpoint did not fit this ledger, so it takes no assignment: run thermite"
            " audit with that checkpoint, then thermite ledger accept-loss on the rig",
        )
    if len(body.imports) > MOST_IMPORTS:
        raise CommandError(
            "malformed_body",
            f"{len(body.imports)} imports, and a command has at most {MOST_IMPORTS}",
        )
    for number, one in enumerate(body.imports):
        problem = import_path_problem(one.path)
        if problem is not None:
            raise CommandError("import_path", f"imports[{number}].path: {problem}")
        repo, commit = getattr(one, "repo", None), getattr(one, "commit", None)
        if repo is not None and not is_name(repo):
            raise CommandError("malformed_body", f"imports[{number}].repo {repo[:80]!a} is no name")
        if commit is not None and not is_commit_id(commit):
            raise CommandError(
                "malformed_body", f"imports[{number}].commit {commit[:80]!a} is no full commit id"
            )
        if one.sha256 is not None and not is_sha256(one.sha256):
            raise CommandError(
                "malformed_body", f"imports[{number}].sha256 is not 64 lower-case hex digits"
            )
