"""The Merkle tree over all events: roots, and short proofs about them.

The tree is that of RFC 6962: event `seq` is leaf `seq` - 1, and every hash that a proof
needs is kept (64 bytes an event), so that no proof has to read the ledger. Functions
below the class check proofs and need no tree.

Source: ledger and signing, 3.4 and 3.14; RFC 6962, 2.1.
"""

import threading
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Final

_NODE: Final = b"\x01"  # RFC 6962, 2.1
_NODE_BEGUN: Final = sha256(_NODE)
"""Begun once: a copy of it costs less than to begin again."""
_BYTES: Final = 32  # of one hash
EMPTY_ROOT: Final = sha256(b"").digest()
"""The root over no leaf (RFC 6962, 2.1)."""


def node(left: bytes, right: bytes) -> bytes:
    """Return the hash of an inner node."""
    return sha256(_NODE + left + right).digest()


def _nodes(hashes: bytes) -> bytes:
    """Return the hashes of the inner nodes over hashes on end, two and two."""
    nodes = []
    for at in range(0, len(hashes), 2 * _BYTES):
        begun = _NODE_BEGUN.copy()
        begun.update(hashes[at : at + 2 * _BYTES])
        nodes.append(begun.digest())
    return b"".join(nodes)


class Tree:
    """A tree that grows to the right; level k holds the roots of its full 2^k-leaf subtrees.

    Leaves wait until something is asked of the tree: one that is added costs nearly nothing, and
    many at once take half the time. One thread adds and cuts, any thread may ask.
    """

    def __init__(self) -> None:
        self._levels: list[bytearray] = [bytearray()]
        self._late: list[bytes] = []
        self._growth = threading.Lock()  # who has it changes the levels
        self._is_behind = False  # levels lack what an interrupt left undone
        self.size = 0

    def append(self, leaf: bytes) -> None:
        """Add one leaf hash."""
        self._late.append(leaf)
        self.size += 1

    def extend(self, leaves: Sequence[bytes]) -> None:
        """Add leaf hashes."""
        self._late.extend(leaves)
        self.size += len(leaves)

    def _grow(self) -> None:
        """Hash what waits, level by level."""
        with self._growth:
            if self._late:
                self._is_behind = True
                late = self._late[:]
                joined, count = b"".join(late), len(late)
                # No call stands between these two: an interrupt finds both done, or none.
                self._levels[0] += joined
                del self._late[:count]
            if self._is_behind:
                self._raise()
                self._is_behind = False

    def _raise(self) -> None:
        leaves = len(self._levels[0]) // _BYTES
        for level, below in enumerate(self._levels):
            full = leaves >> (level + 1)
            if level + 1 == len(self._levels) and full:
                self._levels.append(bytearray())  # the loop goes on to it
            if not full:
                return
            above = self._levels[level + 1]
            above += _nodes(bytes(below[2 * len(above) : 2 * full * _BYTES]))

    def cut(self, size: int) -> None:
        """Forget all leaves after the first `size`: the transaction that added them failed."""
        self._grow()
        self.size = min(self.size, size)
        for level, hashes in enumerate(self._levels):
            del hashes[(self.size >> level) * _BYTES :]

    def leaf(self, index: int) -> bytes:
        """Return one leaf hash; there must be as many."""
        self._check(index + 1)
        return self._root(index, index + 1)

    def root(self, size: int) -> bytes:
        """Return the root over the first `size` leaves; there must be as many."""
        self._check(size)
        return EMPTY_ROOT if size == 0 else self._root(0, size)

    def inclusion(self, index: int, size: int) -> list[bytes]:
        """Return the audit path of a leaf in the tree of the first `size` leaves."""
        self._check(size)
        if not 0 <= index < size:
            raise RuntimeError(f"there is no leaf {index} in a tree of {size}")
        return list(self._path(index, 0, size))

    def consistency(self, old: int, new: int) -> list[bytes]:
        """Return the proof that the tree of `old` leaves is the beginning of that of `new`."""
        self._check(new)
        if not 0 < old <= new:
            raise RuntimeError(f"there is no proof from {old} to {new} leaves")
        return list(self._subproof(old, 0, new, whole=True))

    def carried(self, indexes: Sequence[int], size: int) -> list[bytes]:
        """Return one proof for several leaves: the roots of all ranges that hold none of them.

        Source: ledger and signing, 3.14, `proof`.
        """
        self._check(size)
        return list(self._gaps(sorted(indexes), 0, size))

    def _check(self, size: int) -> None:
        self._grow()
        if not 0 <= size <= self.size:
            raise RuntimeError(f"the tree has {self.size} leaves, not {size}")

    def _root(self, low: int, high: int) -> bytes:
        count = high - low
        if count & (count - 1) == 0:
            level = count.bit_length() - 1
            at = (low >> level) * _BYTES
            return bytes(self._levels[level][at : at + _BYTES])
        middle = low + split(count)
        return node(self._root(low, middle), self._root(middle, high))

    def _path(self, index: int, low: int, high: int) -> Iterator[bytes]:
        if high - low == 1:
            return
        middle = low + split(high - low)
        if index < middle:
            yield from self._path(index, low, middle)
            yield self._root(middle, high)
        else:
            yield from self._path(index, middle, high)
            yield self._root(low, middle)

    def _subproof(self, old: int, low: int, high: int, *, whole: bool) -> Iterator[bytes]:
        if old == high:
            if not whole:
                yield self._root(low, high)
            return
        middle = low + split(high - low)
        if old <= middle:
            yield from self._subproof(old, low, middle, whole=whole)
            yield self._root(middle, high)
        else:
            yield from self._subproof(old, middle, high, whole=False)
            yield self._root(low, middle)

    def _gaps(self, indexes: Sequence[int], low: int, high: int) -> Iterator[bytes]:
        if not indexes:
            yield self._root(low, high)
        elif high - low > 1:
            middle = low + split(high - low)
            yield from self._gaps([i for i in indexes if i < middle], low, middle)
            yield from self._gaps([i for i in indexes if i >= middle], middle, high)


def split(count: int) -> int:
    """Return how many of `count` leaves the left branch holds: the largest power of 2 below."""
    return 1 << ((count - 1).bit_length() - 1)


def root_of_inclusion(leaf: bytes, index: int, size: int, proof: Sequence[bytes]) -> bytes | None:
    """Return the root that an audit path leads to, or None when its length is wrong."""
    if not 0 <= index < size:
        return None
    hashed, last = leaf, size - 1
    for sibling in proof:
        if last == 0:
            return None
        if index & 1 or index == last:
            hashed = node(sibling, hashed)
            while index & 1 == 0:
                index, last = index >> 1, last >> 1
        else:
            hashed = node(hashed, sibling)
        index, last = index >> 1, last >> 1
    return hashed if last == 0 else None


def is_consistent(
    old: int, old_root: bytes, new: int, new_root: bytes, proof: Sequence[bytes]
) -> bool:
    """Return whether a proof shows that the old tree is the beginning of the new one."""
    if not 0 < old <= new:
        return False
    if old == new:
        return not proof and old_root == new_root
    hashes = list(proof)
    if old & (old - 1) == 0:
        hashes.insert(0, old_root)
    if not hashes:
        return False
    at, last = old - 1, new - 1
    while at & 1:
        at, last = at >> 1, last >> 1
    first = second = hashes[0]
    for sibling in hashes[1:]:
        if last == 0:
            return False
        if at & 1 or at == last:
            first, second = node(sibling, first), node(sibling, second)
            while at and at & 1 == 0:
                at, last = at >> 1, last >> 1
        else:
            second = node(second, sibling)
        at, last = at >> 1, last >> 1
    return last == 0 and first == old_root and second == new_root


def root_of_carried(leaves: Mapping[int, bytes], size: int, proof: Sequence[bytes]) -> bytes | None:
    """Return the root that several leaves (by index) and their one proof lead to, or None.

    Source: ledger and signing, 3.14: the proof is consumed from left to right, to its end.
    """
    if not leaves or min(leaves) < 0 or max(leaves) >= size:
        return None
    rest = iter(proof)
    try:
        found = _root_of(leaves, sorted(leaves), 0, size, rest)
    except StopIteration:
        return None
    return found if next(rest, None) is None else None


def _root_of(
    leaves: Mapping[int, bytes], indexes: Sequence[int], low: int, high: int, rest: Iterator[bytes]
) -> bytes:
    if not indexes:
        return next(rest)
    if high - low == 1:
        return leaves[low]
    middle = low + split(high - low)
    left = _root_of(leaves, [i for i in indexes if i < middle], low, middle, rest)
    return node(left, _root_of(leaves, [i for i in indexes if i >= middle], middle, high, rest))
