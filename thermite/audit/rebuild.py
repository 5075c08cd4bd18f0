"""Make anew what is derived from a ledger, and compare it with what lies beside it.

None of it is a fact, and people and the supervisor go by it all the same.
Source: ledger and signing, 3.1 and 3.6.
"""

import os
import stat
from pathlib import Path
from typing import Final

import msgspec

from thermite.audit.fold import state_at
from thermite.ledger.compare import compare
from thermite.schema.offer import TrustCache
from thermite.schema.rebuilt import Mismatch, Rebuilt

VIEWS: Final = "views.db"
TRUST: Final = "trust.json"
_MOST_TRUST_BYTES: Final = 1 << 20
"""A trust of 64 keys with all their rights takes less than a twentieth of it."""


def rebuild(ledger: Path) -> Rebuilt:
    """Return where `views.db` and `trust.json` beside a ledger differ from its events.

    Raises:
        FileNotFoundError: there is no ledger.
        LedgerError: the ledger was changed, or a file beside it can't be read.
    """
    try:
        found = compare(ledger, ledger.with_name(VIEWS))
    except FileNotFoundError:
        found = Rebuilt()
    cache = ledger.with_name(TRUST)
    if not os.path.lexists(cache):
        return found
    return msgspec.structs.replace(
        found,
        compared=[*found.compared, TRUST],
        mismatches=[*found.mismatches, *_unlike_trust(ledger, cache)],
    )


def _unlike_trust(ledger: Path, path: Path) -> list[Mismatch]:
    """Return what the supervisor is told of trust and the events do not say."""
    state = state_at(ledger)
    said = _cache(path)
    if said is None:
        return [_mismatch("file", "", "nothing that can be read", "the trust")]
    opened = state.opened
    pairs = {
        "rig": (said.rig, opened.rig if opened is not None else None),
        "ledger": (said.ledger, opened.ledger if opened is not None else None),
        "version": (said.version, state.trust_version),
    }
    found = [
        _mismatch(name, "", ascii(stands)[:200], ascii(true)[:200])
        for name, (stands, true) in pairs.items()
        if stands != true
    ]
    told, true = ({key.id: key for key in keys} for keys in (said.keys, state.trust))
    for key in sorted(told.keys() | true.keys()):
        if told.get(key) != true.get(key):
            words = [ascii(msgspec.to_builtins(side.get(key)))[:400] for side in (told, true)]
            found.append(_mismatch("keys", ascii(key)[1:-1][:64], *words))
    return found


def _cache(path: Path) -> TrustCache | None:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return None
        with os.fdopen(os.dup(descriptor), "rb") as file:
            return msgspec.json.decode(file.read(_MOST_TRUST_BYTES), type=TrustCache)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return None
    finally:
        os.close(descriptor)


def _mismatch(place: str, key: str, stands: str, events_say: str) -> Mismatch:
    return Mismatch(file=TRUST, place=place, key=key, stands=stands, events_say=events_say)
