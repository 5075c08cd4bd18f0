"""Who may give orders: the first trust, and the cache that the supervisor goes by.

Trust is what the ledger's events say. `trust.json` is written from them, at the start and
after each change, and never read here. Source: ledger and signing, 3.1 and 3.11.
"""

import contextlib
import os
import secrets
from pathlib import Path
from typing import Final

import msgspec

from thermite.campaign.state import State
from thermite.command.trust import read_trust
from thermite.errors import UsageError
from thermite.harness.book import Draft
from thermite.schema.event import TrustSet
from thermite.schema.offer import TrustCache

CACHE: Final = "trust.json"
_MODE: Final = 0o640


def first_trust(raw: bytes, state: State) -> Draft:
    """Return the event that gives a rig its first trust.

    Args:
        raw: a trust file: public lines (`thermite key trust`, `rig serve --trust`).

    Raises:
        UsageError: a line can't be read, a rule is broken, or the rig trusts keys already.
    """
    if state.trust_version:
        raise UsageError(
            f"this rig has trust version {state.trust_version} already: change it with a signed"
            " update_trust (thermite key trust on control)"
        )
    return Draft(TrustSet(version=1, keys=read_trust(raw), by="local"), actor="local")


def write_cache(folder: Path, state: State, *, group: int | None) -> None:
    """Write `trust.json` for the supervisor: whole, synced and renamed.

    Args:
        group: the supervisor's group; None leaves the harness's own.

    Raises:
        OSError: the disk refuses.
    """
    if state.opened is None:
        raise RuntimeError("there is no trust before the ledger is opened")
    cache = TrustCache(
        v=1,
        version=state.trust_version,
        rig=state.opened.rig,
        ledger=state.opened.ledger,
        keys=state.trust,
    )
    half = folder / f".{CACHE}.{secrets.token_hex(4)}"
    descriptor = os.open(half, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, _MODE)
    try:
        with os.fdopen(descriptor, "wb") as file:
            _open_to(file.fileno(), group)
            file.write(msgspec.json.format(msgspec.json.encode(cache), indent=2) + b"\n")
            file.flush()
            os.fsync(file.fileno())
        half.rename(folder / CACHE)
    except BaseException:
        half.unlink(missing_ok=True)
        raise


def _open_to(descriptor: int, group: int | None) -> None:
    """Let the supervisor's group read; where that can't be given, everybody may.

    Public keys are no secret; a supervisor that can't read them is a rig that takes no orders.
    """
    mode = _MODE
    if group is not None and os.fstat(descriptor).st_gid != group:
        with contextlib.suppress(PermissionError):
            os.fchown(descriptor, -1, group)
        if os.fstat(descriptor).st_gid != group:
            mode = 0o644
    os.fchmod(descriptor, mode)
