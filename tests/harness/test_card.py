"""The card in the outbox, by which control gets to know this rig: it keeps up with the ledger."""

import msgspec

from tests.harness.live import Knock, Live, until
from tests.orders import at, trusted
from thermite.command.receipt import open_rig_card
from thermite.command.signing_key import SigningKey
from thermite.harness.book import Draft
from thermite.harness.outbox import witnessed
from thermite.schema.command import RigCard, Trust
from thermite.schema.contract import RepoAt
from thermite.schema.event import RigSelftest
from thermite.schema.judging import JUDGED_RUN_S


def test_the_card_and_the_newest_checkpoint_lie_in_the_outbox(live: Live, knock: Knock) -> None:
    knock.accepted(live.orders.command())
    card = open_rig_card((live.folder.outbox / "rig.json").read_bytes(), None)
    assert (card.rig, card.target) == (live.orders.rig, "cpu")
    assert card.trust == Trust(version=1, keys=live.book.state.trust)
    assert (live.folder.outbox / "checkpoint").read_text() == live.book.ledger.newest_note()
    assert witnessed(live.folder.outbox, live.orders.rig_key.public) == 4
    assert witnessed(live.folder.outbox, SigningKey.generate().public) == 0


def test_the_card_names_a_new_trust_as_soon_as_it_counts(live: Live, knock: Knock) -> None:
    other = SigningKey.generate()
    keys = msgspec.to_builtins([trusted(live.orders.key), trusted(other, roles=["command"])])
    knock.accepted(live.orders.command("update_trust", {"version": 2, "keys": keys}))
    since = at(0)
    body = {"key": other.public.id, "since": since}
    knock.accepted(live.orders.command("revoke_key", body))
    card = open_rig_card((live.folder.outbox / "rig.json").read_bytes(), None)
    assert card.trust is not None
    assert card.trust.version == 2
    assert [key.revoked_since for key in card.trust.keys] == [None, since]


def test_the_card_names_a_selftest_as_soon_as_it_is_recorded(live: Live, knock: Knock) -> None:
    """A forecast is made from the card, and called a rig untested whose campaign had tested it."""
    knock.accepted(live.orders.command())
    found = RigSelftest(
        mode="short",
        kit=RepoAt(repo="tiny", commit="c0"),
        nonce="17",
        order_seed="5e",
        blocks=[0.001],
        figures={JUDGED_RUN_S: 0.25},
        grade="noisy",
        sees=None,
        biased=False,
        insensitive=None,
    )
    live.book.append(Draft(found))

    def carded() -> RigCard:
        return open_rig_card((live.folder.outbox / "rig.json").read_bytes(), None)

    until(lambda: carded().grade is not None, "the card")
    card = carded()
    assert (card.grade, card.timed_kit, card.run_s) == ("noisy", "tiny", 0.25)
