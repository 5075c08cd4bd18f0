"""Whether what left a rig is as new as its ledger: a full or lost outbox shows nowhere else.

Source: ledger and signing, 3.1 and 3.10; known fault K12.
"""

import os
import stat
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from thermite.command.instant import read_instant
from thermite.command.note import read_note
from thermite.errors import LedgerError
from thermite.ledger.reading import opened
from thermite.ledger.tables import FILE_ERRORS

NEWEST: Final = "checkpoint"
_MOST_NOTE_BYTES: Final = 4096  # a note has some 400
_IN_TIME: Final = timedelta(seconds=60)
"""How long a checkpoint may take into the outbox: many times what it takes (our figure)."""
_MOST_IN_TIME: Final = 10_000  # checkpoints of a minute; one is due for each answer


def outbox_problem(ledger: Path, outbox: Path, now: datetime) -> str | None:
    """Return why senders may wait for receipts in vain, or None.

    The harness writes the newest checkpoint beside the receipts of the same events, within
    seconds, so one that is older than the ledger's own of a minute ago says that neither
    could be written.

    Raises:
        FileNotFoundError: there is no ledger.
        LedgerError: it can't be read.
    """
    kept = _newest(ledger, before=now - _IN_TIME)
    if not outbox.is_dir():
        return f"there is no outbox at {outbox}: receipts can't be written until it is made again"
    told = _told(outbox / NEWEST)
    if told >= kept:
        return None
    return (
        f"the outbox is behind: its newest checkpoint is of event {told}, and the ledger's of event"
        f" {kept}; receipts are missing until {outbox} can be written to"
    )


def _newest(ledger: Path, *, before: datetime) -> int:
    """Return the size that the ledger's newest checkpoint of before a moment names, or 0."""
    with opened(ledger) as connection:
        try:
            notes = connection.execute(
                "SELECT note FROM checkpoints ORDER BY size DESC LIMIT ?", (_MOST_IN_TIME,)
            )
            read = (read_note(bytes(note).decode()) for (note,) in notes)
            return next((one.size for one in read if read_instant(one.time) <= before), 0)
        except (*FILE_ERRORS, TypeError, ValueError) as error:
            raise LedgerError(f"{ledger} can't be read: {error}") from None


def _told(path: Path) -> int:
    """Return the size that the outbox's checkpoint names; 0 when there is none to be read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return 0
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return 0
        return read_note(os.read(descriptor, _MOST_NOTE_BYTES).decode()).size
    except (OSError, UnicodeDecodeError, LedgerError):
        return 0
    finally:
        os.close(descriptor)
