"""The hash chain: each event's hash holds its bytes, its place and the hash before it.

Source: ledger and signing, 3.4.
"""

from collections.abc import Iterable
from hashlib import sha256
from typing import Final

HASH_BYTES: Final = 32
_GENESIS: Final = b"thermite.genesis.v1\0"
_EVENT: Final = b"thermite.event.v1\0"
_LEAF: Final = b"\0"  # RFC 6962, 2.1
# Begun once: a copy of what has taken in its beginning costs less than to begin again.
_EVENT_BEGUN: Final = sha256(_EVENT)
_LEAF_BEGUN: Final = sha256(_LEAF)


def genesis(ledger: str, rig_key: bytes) -> bytes:
    """Return the hash before event 1, which ties a chain to one ledger of one rig.

    Args:
        ledger: the ledger's id, 32 hex digits; it enters as its 16 bytes.
        rig_key: the rig's raw public key, 32 bytes.
    """
    return sha256(_GENESIS + bytes.fromhex(ledger) + rig_key).digest()


def leaf(body: bytes) -> bytes:
    """Return the hash of an event's exact bytes, for the chain and the Merkle tree alike."""
    begun = _LEAF_BEGUN.copy()
    begun.update(body)
    return begun.digest()


def leaves(bodies: Iterable[bytes]) -> list[bytes]:
    """Return the leaf hash of each of several events' bytes."""
    hashes = []
    for body in bodies:
        begun = _LEAF_BEGUN.copy()  # written out: a call for each costs a sixth more
        begun.update(body)
        hashes.append(begun.digest())
    return hashes


def link(before: bytes, seq: int, event_leaf: bytes) -> bytes:
    """Return the hash of event `seq`, whose leaf is given, after the hash before it."""
    begun = _EVENT_BEGUN.copy()
    begun.update(before + seq.to_bytes(8) + event_leaf)  # big-endian
    return begun.digest()


def links(before: bytes, first: int, event_leaves: Iterable[bytes]) -> list[bytes]:
    """Return the hash of each of several events on end, as `link` does for one.

    Args:
        before: the hash before event `first`; event_leaves: of the events from `first` on.
    """
    hashes = []
    for seq, event_leaf in enumerate(event_leaves, first):
        # Written out: at a million events a call for each is a second.
        begun = _EVENT_BEGUN.copy()
        begun.update(before + seq.to_bytes(8) + event_leaf)  # big-endian
        before = begun.digest()
        hashes.append(before)
    return hashes
