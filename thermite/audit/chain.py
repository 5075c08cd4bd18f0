"""Each row by itself and after the one before: its place, its hash, its columns, its form.

A row is what a stranger's file holds, so its values may be of any kind. The stored hash of
a row is the ground for the next one: a changed row is found where it is, and not at every
row after it.

Source: ledger and signing, 3.4, the table of findings.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeAlias, cast

import msgspec

from thermite.audit.findings import Findings, shown
from thermite.ledger.chain import HASH_BYTES, leaf, leaves, link, links
from thermite.ledger.dedup import dedup_key, dedup_keys
from thermite.ledger.encode import decode, decode_all
from thermite.ledger.merkle import Tree
from thermite.schema.audit import Finding
from thermite.schema.event import ENVELOPES, TAG_OF, Event


class Row(NamedTuple):
    """One row of `events` as the file has it; nothing about it is certain but the place."""

    seq: int
    type: object
    body: object
    hash: object
    dedup: object


Values: TypeAlias = tuple[int, object, object, object, object]
"""A row before anybody has looked at it: the fields of `Row`."""


class _Tagged(msgspec.Struct):
    type: str


class ChainCheck:
    """Walks over the rows; keeps the tree and head over what it has seen, and wanted hashes.

    Args:
        genesis: the hash before event 1; None when event 1 does not say whose ledger it is.
    """

    def __init__(self, genesis: bytes | None, findings: Findings) -> None:
        self.tree = Tree()
        self.heads: dict[int, bytes] = {}
        self._wanted: frozenset[int] = frozenset()
        self.unread: dict[str, int] = {}
        self.last = 0
        self._findings = findings
        self._head = genesis
        # What the last row's hash should have been, when the file says otherwise.
        self._should: bytes | None = None

    def want(self, seqs: Iterable[int]) -> None:
        """Keep the stored hashes of some rows in `heads`, when they come."""
        self._wanted = frozenset(seqs)

    @property
    def head(self) -> bytes:
        """The stored hash of the last row; empty before the first."""
        return self._head or b""

    def take_all(self, rows: Sequence[Values]) -> list[Event | None]:
        """Check the next rows and return their events, None for each that can't be read.

        Rows that are all as they should be are taken column by column, which takes half the
        time; with any doubt each is looked at by itself.
        """
        events = self._take_good(rows)
        return events if events is not None else [self._take_one(Row(*row)) for row in rows]

    def _take_good(self, rows: Sequence[Values]) -> list[Event | None] | None:
        """Take rows of which each value is what it should be, or none of them."""
        if self._head is None or self._should is not None:
            return None
        seqs, kinds, bodies, hashes, dedups = zip(*rows, strict=True)
        if seqs != tuple(range(self.last + 1, self.last + 1 + len(rows))):
            return None
        if not {bytes}.issuperset(map(type, bodies)):
            return None
        exact = cast("Sequence[bytes]", bodies)
        hashed = leaves(exact)
        heads = links(self._head, seqs[0], hashed)
        events = decode_all(exact)
        if (
            events is None
            or heads != [*hashes]
            or [TAG_OF[type(event.data)] for event in events] != [*kinds]
            or dedup_keys(events) != [*dedups]
        ):
            return None
        self.tree.extend(hashed)
        self._head, self.last = heads[-1], seqs[-1]
        self.heads.update((seq, heads[seq - seqs[0]]) for seq in self._wanted.intersection(seqs))
        return [*events]

    def _take_one(self, row: Row) -> Event | None:
        event = self.take(row)
        if row.seq in self._wanted:
            self.heads[row.seq] = self.head
        return event

    def take(self, row: Row) -> Event | None:
        """Check the next row and return its event, or None when it can't be read."""
        in_place = row.seq == self.last + 1
        if not in_place:
            self._add_gap(row.seq)
        body = row.body if isinstance(row.body, bytes) else b""
        hashed = leaf(body)
        fits = self._check_hash(row, hashed, after_gap=not in_place)
        self.tree.append(hashed)
        self.last = row.seq
        return self._event(row, body, fits=fits)

    def _add_gap(self, seq: int) -> None:
        self._findings.add(
            Finding(
                code="seq_gap",
                severity="finding",
                seq=seq,
                expected=str(self.last + 1),
                got=str(seq),
                explain=f"event {self.last + 1} does not follow event {self.last}: events were"
                " deleted or put in",
            )
        )

    def _check_hash(self, row: Row, hashed: bytes, *, after_gap: bool) -> bool:
        """Return whether the row's hash fits; after a gap nothing can be said."""
        stored = row.hash if isinstance(row.hash, bytes) and len(row.hash) == HASH_BYTES else None
        before, should = self._head, self._should
        expected = None if before is None else link(before, row.seq, hashed)
        self._head, self._should = stored or expected, None
        if after_gap or (expected is None and stored is not None) or stored == expected:
            return True
        if should is not None and stored == link(should, row.seq, hashed):
            return True  # the row before has another hash than its event: found there
        self._should = expected
        self._findings.add(
            Finding(
                code="body_hash",
                severity="finding",
                seq=row.seq,
                expected=shown(row.hash),
                got=shown(expected),
                explain=f"event {row.seq} is not what was hashed: its body, its hash or its place"
                " was changed",
            )
        )
        return False

    def _event(self, row: Row, body: bytes, *, fits: bool) -> Event | None:
        event: Event | None = None
        problem = ""
        try:
            event = decode(body)
        except ValueError as error:
            problem = str(error)
        tag = _tag(body) if event is None else event.__struct_config__.tag
        self._check_column(row, "type", tag, row.type)
        if event is not None:
            self._check_column(row, "dedup", dedup_key(event), row.dedup)
        elif tag is not None and tag not in ENVELOPES:
            self._add_unknown(row.seq, str(tag))
        elif fits:
            self._findings.add(
                Finding(
                    code="event_unreadable",
                    severity="finding",
                    seq=row.seq,
                    expected=f"an event {tag}" if tag is not None else "an event",
                    got=shown(body[:80]),
                    explain=f"event {row.seq} can't be read: {problem}",
                )
            )
        return event

    def _check_column(self, row: Row, column: str, expected: object, got: object) -> None:
        if expected == got or (column == "type" and expected is None):
            return
        self._findings.add(
            Finding(
                code="column_mismatch",
                severity="finding",
                seq=row.seq,
                expected=shown(expected),
                got=shown(got),
                explain=f"column {column} of event {row.seq} is not what its body says",
            )
        )

    def _add_unknown(self, seq: int, tag: str) -> None:
        first = tag not in self.unread
        self.unread[tag] = self.unread.get(tag, 0) + 1
        if first:
            self._findings.add(
                Finding(
                    code="unknown_type",
                    severity="warning",
                    seq=seq,
                    expected=None,
                    got=shown(tag),
                    explain=f"event {seq} is of a type that this version does not know: its hash"
                    " was checked and its meaning was not; upgrade Thermite",
                )
            )


def _tag(body: bytes) -> str | None:
    """Return the type that a body names, whatever else it holds, or None."""
    try:
        return msgspec.json.decode(body, type=_Tagged).type
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
