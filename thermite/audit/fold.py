"""The history: whether each event may follow the ones before, by the harness's own table.

Source: contract, Events, last paragraph; ledger and signing, 3.4, `illegal_transition`.
"""

from collections.abc import Iterable
from pathlib import Path

from thermite.audit.findings import Findings
from thermite.campaign.fold import fold
from thermite.campaign.state import State
from thermite.campaign.table import problem
from thermite.errors import LedgerError
from thermite.ledger.replay import recorded
from thermite.schema.audit import Finding
from thermite.schema.event import TAG_OF, Event


class History:
    """The state that the events so far mean; it stops where an event can't be read."""

    def __init__(self, findings: Findings) -> None:
        self.state = State()
        self._findings = findings
        self._stopped = False

    def take(self, seq: int, event: Event | None) -> None:
        """Follow the history by one event; None: it can't be read."""
        self.take_all([seq], [event])

    def take_all(self, seqs: Iterable[int], events: Iterable[Event | None]) -> None:
        """Follow the history by some events, each with its number."""
        if self._stopped:
            return
        state = self.state
        for seq, event in zip(seqs, events, strict=True):
            if event is None:
                self._stop(seq)
                return
            why = problem(state, event)
            if why is None:
                try:
                    fold(state, seq, event)
                except LedgerError as error:
                    why = f"it names what is not there ({type(error.__cause__).__name__})"
            if why is not None:
                self._add(seq, event, why)

    def _add(self, seq: int, event: Event, why: str) -> None:
        self._findings.add(
            Finding(
                code="illegal_transition",
                severity="finding",
                seq=seq,
                expected=None,
                got=TAG_OF[type(event.data)],
                explain=f"event {seq} can't follow the events before it: {why}",
            )
        )

    def _stop(self, seq: int) -> None:
        self._stopped = True
        self._findings.add(
            Finding(
                code="history_unread",
                severity="warning",
                seq=seq,
                expected=None,
                got=None,
                explain=f"event {seq} can't be read, so whether later events may follow was not"
                " checked",
            )
        )


def state_at(path: Path, until: int | None = None) -> State:
    """Return what a ledger's events mean, up to event `until`, or all of them.

    Raises:
        FileNotFoundError: there is no such file.
        LedgerError: the file is no ledger or was changed; it ends before `until`; an event
            is of an unknown type or can't follow those before it.
    """
    findings = Findings()
    history = History(findings)
    last = 0
    for row in recorded(path):
        if until is not None and row.seq > until:
            break
        history.take(row.seq, row.event)
        if findings.listed:
            raise LedgerError(f"{findings.listed[0].explain}: run thermite audit")
        last = row.seq
    if until is not None and last < until:
        raise LedgerError(f"the ledger ends at event {last}, before event {until}")
    return history.state
