"""What the rig's owner does on the rig itself, while it is stopped: no signature, but an event.

Two acts only: give or replace the trust, when the root key is lost; and go on after events
were lost. Both are recorded with actor `local`, and every later audit shows them. The lock of
the ledger's one writer keeps a serving rig from being changed under its feet.

Source: ledger and signing, 3.3 (at open), 3.9 (step 11) and 3.11 (emergency).
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from thermite.command.public_key import PublicKey
from thermite.command.trust import read_trust
from thermite.errors import NotFoundError, UsageError
from thermite.harness.book import Book, Draft, open_ledger
from thermite.harness.folder import RigFolder
from thermite.harness.keys import rig_key
from thermite.harness.outbox import checkpoint_size, witnessed
from thermite.harness.trust import first_trust
from thermite.schema.command import TrustedKey
from thermite.schema.event import LedgerGap, TrustReset


def trust_here(state: Path, raw: bytes, *, replace: bool) -> tuple[int, list[TrustedKey]]:
    """Give a stopped rig its first trust, or replace the one it has; return version and keys.

    Args:
        state: the rig's folder.
        raw: a trust file.
        replace: record a `trust_reset`; without it the rig must trust nobody yet.

    Raises:
        NotFoundError: there is no rig.
        UsageError: not its owner, a bad trust file, or there is a trust already.
        LedgerError: the rig is serving, or its ledger must not be written to.
    """
    folder = _owned(state)
    with _book(folder, reach=None) as book:
        if not replace:
            book.append(first_trust(raw, book.state))
        else:
            version = book.state.trust_version + 1
            book.append(Draft(TrustReset(version=version, keys=read_trust(raw)), actor="local"))
        return book.state.trust_version, list(book.state.trust)


def accept_loss(state: Path) -> LedgerGap:
    """Record that events are lost, and let the rig write again; return what was recorded.

    The receipts that name lost events are moved to `outbox/lost-<size>/`: they are evidence
    for an audit, and no longer a reason to refuse.

    Raises:
        NotFoundError: there is no rig.
        UsageError: not its owner, or nothing is lost.
        LedgerError: the rig is serving, or its ledger must not be written to.
    """
    folder = _owned(state)
    with _book(folder, reach=0) as book:
        size, key = book.ledger.size, rig_key(folder.keys, fresh=False).public
        named = witnessed(folder.outbox, key)
        if named <= size and not book.state.ledger_locked:
            raise UsageError(
                f"nothing is lost: the ledger has {size} events, the newest receipt names event"
                f" {named}, and no sender's checkpoint was refused"
            )
        gap = LedgerGap(from_=size + 1, to=max(named, size))
        book.append(Draft(gap, actor="local"))
        _set_aside(folder.outbox, key, size)
    return gap


def _owned(state: Path) -> RigFolder:
    folder = RigFolder(state)
    if not folder.ledger.is_file():
        raise NotFoundError(f"there is no rig's ledger at {folder.ledger}")
    owner = state.stat().st_uid
    if os.geteuid() not in {0, owner}:
        raise UsageError(f"{state} belongs to uid {owner}: only that user may do this")
    return folder


@contextmanager
def _book(folder: RigFolder, *, reach: int | None) -> Iterator[Book]:
    """Open the ledger as its writer; reach: what it must hold, None: what receipts name."""
    key = rig_key(folder.keys, fresh=False)
    most = witnessed(folder.outbox, key.public) if reach is None else reach
    book = Book(open_ledger(folder.ledger, key, witnessed=most), folder.ledger)
    try:
        yield book
    finally:
        book.close()


def _set_aside(outbox: Path, key: PublicKey, size: int) -> None:
    aside = outbox / f"lost-{size}"
    aside.mkdir(mode=0o755, exist_ok=True)
    for path in sorted(outbox.iterdir()):
        if path.is_file() and checkpoint_size(path, key) > size:
            path.rename(aside / path.name)
