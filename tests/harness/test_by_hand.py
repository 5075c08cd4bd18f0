"""What the owner of a stopped rig may do by hand, and that an audit shows it for ever."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.ledger.facts import Clock, Facts
from thermite.audit.fold import state_at
from thermite.audit.verify import audit
from thermite.cli.ledger import command
from thermite.command.signing_key import SigningKey
from thermite.errors import LedgerError, NotFoundError, UsageError
from thermite.harness import clock
from thermite.harness.by_hand import accept_loss, trust_here
from thermite.harness.folder import RigFolder
from thermite.harness.outbox import NEWEST, witnessed
from thermite.ledger.append import Ledger
from thermite.schema.event import CommandRefused


class Stopped:
    """A rig's folder with key and ledger, and nothing that runs."""

    def __init__(self, state: Path) -> None:
        self.folder = RigFolder(state)
        self.folder.make()
        self.folder.outbox.mkdir()
        self.key = SigningKey.generate()
        (self.folder.keys / "rig.key").write_bytes(self.key.pem(None))
        self.facts = Facts(self.key, Clock())
        Ledger.create(self.folder.ledger, self.facts.opened(), self.key, now=clock.stamp).close()

    @property
    def state(self) -> Path:
        return self.folder.state

    def open(self) -> Ledger:
        reach = witnessed(self.folder.outbox, self.key.public)
        return Ledger.open(self.folder.ledger, self.key, now=clock.stamp, witnessed=reach)


@pytest.fixture
def rig(tmp_path: Path) -> Stopped:
    return Stopped(tmp_path / "rig")


def line(label: str, rights: str = "") -> bytes:
    return f"{SigningKey.generate().public.line(label)} {rights}\n".encode()


def test_the_first_trust_is_given_once(rig: Stopped) -> None:
    version, keys = trust_here(rig.state, line("anna"), replace=False)
    assert (version, [key.label for key in keys]) == (1, ["anna"])
    with pytest.raises(UsageError, match="trust version 1 already"):
        trust_here(rig.state, line("bob"), replace=False)
    assert not audit(rig.folder.ledger).fails


def test_replaced_trust_is_red_in_every_later_audit(rig: Stopped) -> None:
    trust_here(rig.state, line("anna"), replace=False)
    version, keys = trust_here(rig.state, line("bob"), replace=True)
    assert (version, [key.label for key in keys]) == (2, ["bob"])
    assert state_at(rig.folder.ledger).trust_was_reset
    with rig.open() as ledger:
        ledger.append([rig.facts.probe()])
    found = audit(rig.folder.ledger)
    assert [one.code for one in found.findings if one.severity == "finding"] == ["trust_reset"]


def test_a_bad_trust_file_changes_nothing(rig: Stopped) -> None:
    before = rig.folder.ledger.read_bytes()
    with pytest.raises(UsageError, match="exactly one"):
        trust_here(rig.state, line("a") + line("b"), replace=True)
    assert audit(rig.folder.ledger).events == 1
    assert len(before) == len(rig.folder.ledger.read_bytes())


def cut_after_a_receipt(rig: Stopped) -> None:
    """Lose events that a checkpoint in the outbox names, as an old backup does."""
    backup = rig.folder.ledger.read_bytes()
    with rig.open() as ledger:
        ledger.append([rig.facts.probe() for _ in range(4)])
        note = ledger.checkpoint()
    (rig.folder.outbox / NEWEST).write_text(note)
    rig.folder.ledger.write_bytes(backup)


def test_a_rig_goes_on_after_a_loss_that_its_owner_accepts(rig: Stopped) -> None:
    cut_after_a_receipt(rig)
    with pytest.raises(LedgerError, match="ends at event 1, and a receipt names event 5"):
        rig.open()
    gap = accept_loss(rig.state)
    assert (gap.from_, gap.to) == (2, 5)
    with rig.open() as ledger:
        ledger.append([rig.facts.probe()])
    assert (rig.folder.outbox / "lost-1" / NEWEST).is_file()
    found = audit(rig.folder.ledger)
    assert "ledger_gap" in [one.code for one in found.findings]
    against = audit(rig.folder.ledger, against=[rig.folder.outbox / "lost-1"])
    assert against.fails


def test_a_locked_ledger_takes_assignments_again(rig: Stopped) -> None:
    refused = rig.facts.event(
        CommandRefused(sha256="a" * 64, size=9, name="x.cmd.json", code="ledger_forked"),
        assignment=None,
    )
    with rig.open() as ledger:
        ledger.append([refused])
    assert state_at(rig.folder.ledger).ledger_locked
    accept_loss(rig.state)
    assert not state_at(rig.folder.ledger).ledger_locked
    said = [one.explain for one in audit(rig.folder.ledger).findings if one.code == "ledger_gap"]
    assert said == ["a sender's checkpoint did not fit before event 3, and the owner went on"]


@pytest.mark.parametrize("is_lost", [True, False], ids=["lost", "locked"])
def test_the_command_says_which_of_the_two_it_recorded(rig: Stopped, *, is_lost: bool) -> None:
    if is_lost:
        cut_after_a_receipt(rig)
    else:
        refusal = CommandRefused(sha256="a" * 64, size=9, name="x.cmd.json", code="ledger_forked")
        with rig.open() as ledger:
            ledger.append([rig.facts.event(refusal, assignment=None)])
    done = CliRunner().invoke(command, ["accept-loss", str(rig.state), "--yes"])
    what = "events 2 to 5 are lost" if is_lost else "no event is known to be lost"
    assert what in done.output


def test_where_nothing_is_lost_nothing_is_recorded(rig: Stopped) -> None:
    with pytest.raises(UsageError, match="nothing is lost: the ledger has 1 events"):
        accept_loss(rig.state)
    assert audit(rig.folder.ledger).events == 1


def test_a_serving_rig_is_left_alone(rig: Stopped) -> None:
    with rig.open(), pytest.raises(LedgerError, match="is written to by process"):
        trust_here(rig.state, line("anna"), replace=True)


def test_a_folder_without_a_rig_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="no rig's ledger"):
        accept_loss(tmp_path)
