"""The events of a ledger, and what is found when a rig that lies tells one otherwise."""

from collections.abc import Mapping
from pathlib import Path

import msgspec

from thermite.audit.rejudge import rejudged
from thermite.ledger.replay import recorded
from thermite.schema import event as e

Events = list[tuple[int, e.Event]]


def events(ledger: Path) -> Events:
    return [(row.seq, row.event) for row in recorded(ledger)]


def with_data(told: Events, at: int, **changed: object) -> Events:
    """Return the events with one payload changed, as a rig that lies would have written them."""
    seq, event = told[at]
    data = msgspec.structs.replace(event.data, **changed)
    return [*told[:at], (seq, msgspec.structs.replace(event, data=data)), *told[at + 1 :]]


def lies(told: Events, kind: type, of: Mapping[str, object], **changed: object) -> list[str]:
    """Return what is found when the first event that is so tells something else."""
    at = next(
        n
        for n, (_, event) in enumerate(told)
        if isinstance(event.data, kind) and all(getattr(event.data, f) == v for f, v in of.items())
    )
    return [one.what for one in rejudged(with_data(told, at, **changed)).differences]
