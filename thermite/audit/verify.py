"""The walk of an audit, from the file to the last checkpoint; and the proof of one event.

Source: ledger and signing, 3.4 and 3.7.
"""

import sqlite3
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from thermite.audit import file
from thermite.audit.against import Outside, OutsideCheck, read_outside
from thermite.audit.chain import ChainCheck, Values
from thermite.audit.findings import Findings
from thermite.audit.fold import History
from thermite.audit.notes import Ground, NotesCheck
from thermite.audit.story import Story
from thermite.command import strict_base64
from thermite.command.public_key import PublicKey
from thermite.errors import LedgerError, UsageError
from thermite.ledger.chain import genesis
from thermite.ledger.reading import opened
from thermite.ledger.replay import Opening, opening
from thermite.ledger.tables import FILE_ERRORS, plain_tables
from thermite.schema.audit import Audit, EventProof, Finding, Tail


def unheard(_: str) -> None:
    """Tell nobody."""


def audit(
    path: Path,
    *,
    against: Sequence[Path] = (),
    trusted: Sequence[PublicKey] = (),
    tell: Callable[[str], None] = unheard,
) -> Audit:
    """Return everything that an audit of a ledger finds; the ledger is only read.

    Args:
        path: the ledger, live or copied.
        against: files and folders with checkpoints that were kept outside.
        trusted: the keys that may have signed for this rig; none: the ledger's own word.
        tell: hears what is read, and how far, some thousand times a second.

    Raises:
        FileNotFoundError: a file is not there.
        LedgerError: the file is no ledger, or can't be read at all.
        UsageError: a file of `against` holds no checkpoint.
    """
    outside = read_outside(against)
    return _walked(path, outside, trusted, tell).result()


def prove(
    path: Path,
    seq: int,
    *,
    trusted: Sequence[PublicKey] = (),
    tell: Callable[[str], None] = unheard,
) -> EventProof:
    """Return the proof that an event is in the ledger that the first covering note signs.

    Raises:
        FileNotFoundError: there is no such file.
        LedgerError: the file is no ledger; it has no such event, no valid checkpoint covers
            it, or the ledger was changed up to there.
    """
    walk = _walked(path, [], trusted, tell)
    size = min((size for size in walk.notes.valid if size >= seq), default=None)
    if not 1 <= seq <= walk.chain.tree.size:
        raise LedgerError(f"the ledger has no event {seq}: it ends at {walk.chain.tree.size}")
    if size is None:
        raise LedgerError(f"no valid checkpoint covers event {seq}: run thermite audit")
    return EventProof(
        seq=seq,
        leaf=strict_base64.encode(walk.chain.tree.leaf(seq - 1)),
        inclusion=[strict_base64.encode(h) for h in walk.chain.tree.inclusion(seq - 1, size)],
        size=size,
        checkpoint=walk.notes.valid[size][1],
    )


def promotion_proof(path: Path, seqs: Sequence[int]) -> tuple[str, str, list[bytes]]:
    """Return the newest stored checkpoint over some events, the rig's key, and one proof.

    Raises:
        LedgerError: the ledger was changed, or no checkpoint covers them yet.
    """
    walk = _walked(path, [], [])
    size = max((size for size in walk.notes.valid if size >= max(seqs)), default=None)
    if size is None or walk.opened is None:
        raise LedgerError(
            f"no valid checkpoint covers event {max(seqs)} yet: ask the rig for one with"
            " thermite receipts checkpoint"
        )
    proof = walk.chain.tree.carried([seq - 1 for seq in seqs], size)
    return walk.notes.valid[size][1], walk.opened.rig_key, proof


def _walked(
    path: Path,
    outside: Sequence[Outside],
    trusted: Sequence[PublicKey],
    tell: Callable[[str], None] = unheard,
) -> "_Walk":
    with opened(path, any_version=True) as connection:
        try:
            walk = _Walk(connection, trusted, tell)
            walk.read(outside)
        except FILE_ERRORS as error:
            raise LedgerError(f"{path} can't be read: {error}") from None
    return walk


class _Walk:
    """One audit under way."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        trusted: Sequence[PublicKey],
        tell: Callable[[str], None],
    ) -> None:
        self._connection, self._tell = connection, tell
        self._findings = Findings()
        self._tables = plain_tables(connection)
        if "events" not in self._tables:
            raise LedgerError("it has no table events whose rows could be read one after the other")
        self.opened, self._key = self._opening()
        self._trusted = trusted
        before = None
        if self.opened is not None and self._key is not None:
            before = genesis(self.opened.ledger, self._key.raw)
        self.chain = ChainCheck(before, self._findings)
        self._history = History(self._findings)
        self._story = Story(self._findings)
        self._whole = True
        self.notes: NotesCheck
        self._outside: OutsideCheck

    def read(self, outside: Sequence[Outside]) -> None:
        """Read the whole file, then the checkpoints, then those from outside."""
        self._tell("SQLite checks its pages")
        file.check_schema(self._connection, self._findings)
        sound = file.check_soundness(self._connection, self._findings)
        self._check_pin()
        extent = file.extent(self._connection, self._tables, self._findings, sound=sound)
        wanted = {size for size, _ in self._checkpoints(extent, file.sizes)}
        self._read_events(extent.events, {*wanted, *(one.said.size for one in outside)})
        ground = self._ground()
        self.notes = NotesCheck(ground, self._findings)
        for size, note in self._checkpoints(extent, file.checkpoints):
            self._tell(f"checkpoint of event {size:,}")
            if not self.notes.take(size, note):
                break
        self.notes.finish(self._story.must_be_signed, self._story.last_at)
        inside = {size: text for size, (_, text) in self.notes.valid.items()}
        self._outside = OutsideCheck(ground, inside, self._findings)
        self._outside.take(outside)

    def result(self) -> Audit:
        """Return what was found."""
        story, tree, said = self._story, self.chain.tree, self.opened
        fitting = sorted(self._outside.sizes)
        newest = fitting[-1] if fitting else None
        return Audit(
            ledger=said.ledger if said is not None else None,
            rig=said.rig if said is not None else None,
            rig_key=said.rig_key if said is not None else None,
            key_pinned=bool(self._trusted),
            events=tree.size,
            first_at=story.first_at,
            last_at=story.last_at,
            head=strict_base64.encode(self.chain.head),
            root=strict_base64.encode(tree.root(tree.size)),
            checkpoints=self.notes.total,
            checkpoints_valid=len(self.notes.valid),
            newest_checkpoint=max(self.notes.valid, default=None),
            newest_external=newest,
            unwitnessed=tree.size - (newest or 0),
            tails=self._tails(fitting),
            accepted=dict(story.accepted),
            refused=dict(story.refused),
            revoked_uses=story.revoked_uses,
            clock_steps=story.clock_steps,
            open_coins=story.open_coins,
            unread=self.chain.unread,
            findings=self._findings.explained(),
            unlisted=self._findings.unlisted,
        )

    def _opening(self) -> tuple[Opening | None, PublicKey | None]:
        try:
            said, raw = opening(self._connection)
            return said, PublicKey(raw)
        except (LedgerError, UsageError) as error:
            self._findings.add(
                Finding(
                    code="opening_unreadable",
                    severity="finding",
                    seq=1,
                    expected="ledger_opened",
                    got=None,
                    explain=f"event 1 does not say whose ledger this is ({error}), so no"
                    " checkpoint can be verified",
                )
            )
            return None, None

    def _check_pin(self) -> None:
        key = self._key
        if key is None or not self._trusted or key in self._trusted:
            return
        self._findings.add(
            Finding(
                code="key_not_trusted",
                severity="finding",
                seq=1,
                expected=", ".join(one.id for one in self._trusted),
                got=key.id,
                explain="the key that event 1 names is not among those the auditor trusts",
            )
        )

    def _read_events(self, up_to: int, wanted: set[int]) -> None:
        self.chain.want(wanted)
        count = 0
        try:
            for page in file.pages(self._connection, up_to):
                self._take(page)
                count += len(page)
                self._tell(f"event {count:,} of {up_to:,}")
        except FILE_ERRORS as error:
            self._whole = False
            file.add_damage(self._findings, error, self.chain.last)
        if count != self.chain.last:
            self._whole = False
        if count == 0:
            file.add_empty(self._findings)

    def _take(self, page: Sequence[Values]) -> None:
        seqs = [row[0] for row in page]
        events = self.chain.take_all(page)
        with self._findings.by_event():
            self._history.take_all(seqs, events)
            self._story.take_all(seqs, events)

    def _checkpoints(
        self,
        extent: file.Extent,
        read: Callable[[sqlite3.Connection, file.Extent], Iterator[file.Note]],
    ) -> Iterator[file.Note]:
        if "checkpoints" not in self._tables:
            return
        try:
            yield from read(self._connection, extent)
        except FILE_ERRORS as error:
            if "damaged_file" not in self._findings:
                file.add_damage(self._findings, error)

    def _ground(self) -> Ground:
        keys = tuple(self._trusted) or ((self._key,) if self._key is not None else ())
        name = None
        if self.opened is not None:
            name = f"thermite/{self.opened.rig}/{self.opened.ledger}"
        return Ground(name, keys, self.chain.tree, self.chain.heads, whole=self._whole)

    def _tails(self, fitting: Sequence[int]) -> list[Tail]:
        if not fitting:
            return []
        tails = []
        for seq, command, _ in self._story.commands:
            at = bisect_left(fitting, seq)
            covered = fitting[at - 1] if at else 0
            tails.append(Tail(seq=seq, command=command.id, events=seq - 1 - covered))
        return tails
