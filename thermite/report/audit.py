"""An audit as text for people and as one JSON object for programs.

Source: ledger and signing, 3.7: what `thermite audit` prints.
"""

import base64
import hashlib
from collections.abc import Iterator
from typing import Any

import msgspec

from thermite.schema.audit import Audit, EventProof, Finding

_MOST_LINES = 20
"""Commands, steps and the like of one kind that the text lists; the JSON has all of them."""


def lines(audit: Audit) -> list[str]:
    """Return what an audit found, line by line; the last one says how it ends."""
    return [
        *_head(audit),
        *_outside(audit),
        *_commands(audit),
        *_notes(audit),
        *(line for finding in audit.findings for line in _finding(finding)),
        *(f"{count} more of {code}" for code, count in audit.unlisted.items()),
        verdict(audit),
    ]


def document(audit: Audit) -> dict[str, Any]:
    """Return an audit as one JSON object; `warnings` count among its findings."""
    return {"clean": not audit.fails} | dict(msgspec.to_builtins(audit))


def verdict(audit: Audit) -> str:
    """Return one line: whether the audit found anything."""
    warnings = sum(finding.severity == "warning" for finding in audit.findings)
    count = len(audit.findings) - warnings + sum(audit.unlisted.values())
    return f"{_many(count, 'finding') if count else 'clean'}, {_many(warnings, 'warning')}"


def proof_lines(proof: EventProof) -> list[str]:
    """Return a proof of inclusion as text: what to hash, with what, and what signs it."""
    return [
        f"event {proof.seq} is leaf {proof.seq - 1} of {proof.size}: {proof.leaf}",
        *(f"hash {value}" for value in proof.inclusion),
        *proof.checkpoint.splitlines(),
    ]


def _head(audit: Audit) -> Iterator[str]:
    yield f"ledger {audit.ledger or 'unknown'} of rig {audit.rig or 'unknown'}"
    yield f"{_many(audit.events, 'event')}, {audit.first_at or '?'} to {audit.last_at or '?'}"
    yield f"head {audit.head}"
    yield f"root {audit.root}"
    newest = audit.newest_checkpoint
    yield (
        f"{audit.checkpoints_valid} of {_many(audit.checkpoints, 'checkpoint')} valid, the newest"
        f" at event {newest if newest is not None else 'none'}"
    )
    if not audit.key_pinned:
        yield _own_word(audit.rig_key)


def _own_word(key: str | None) -> str:
    """Return that nobody named the key, and what to do where the ledger names one."""
    said = "the rig's key is the ledger's own word: "
    if key is None:
        return said + "name the key you trust with --keys"
    fingerprint = hashlib.sha256(base64.b64decode(key)).hexdigest()
    return (
        f"{said}compare SHA256:{fingerprint} with what rig serve printed, then give --keys a file"
        f" with the line thermite-ed25519 {key} rig"
    )


def _outside(audit: Audit) -> Iterator[str]:
    if audit.newest_external is None:
        return
    yield (
        f"a checkpoint from outside fits at event {audit.newest_external}:"
        f" {_many(audit.unwitnessed, 'event')} after it rest on this file alone"
    )
    for tail in audit.tails[-_MOST_LINES:]:
        yield (
            f"  command {tail.command} was accepted at event {tail.seq},"
            f" {_many(tail.events, 'event')} after the newest outside checkpoint of then"
        )


def _commands(audit: Audit) -> Iterator[str]:
    for key, count in audit.accepted.items():
        yield f"{_many(count, 'command')} of key {key} accepted"
    for code, count in audit.refused.items():
        yield f"{_many(count, 'command file')} refused: {code}"


def _notes(audit: Audit) -> Iterator[str]:
    for step in audit.clock_steps[:_MOST_LINES]:
        yield f"the clock stepped by {step.seconds:+.3f} s before event {step.seq}"
    for coin in audit.open_coins:
        yield f"coin not yet revealed: {_many(coin.attempts, 'attempt')} of {coin.assignment}"
    for kind, count in audit.unread.items():
        yield f"{_many(count, 'event')} of the unknown type {kind!a}"


def _finding(finding: Finding) -> Iterator[str]:
    yield f"{finding.severity} {finding.code}: {finding.explain}"
    if finding.follows is not None:
        yield f"  follows from {finding.follows}"
    for name, value in (("expected", finding.expected), ("got", finding.got)):
        if value is not None:
            yield from (f"  {name} {line}" for line in value.splitlines())


def _many(count: int, thing: str) -> str:
    return f"{count} {thing}{'' if count == 1 else 's'}"
