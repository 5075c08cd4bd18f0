"""A rig goes on from no campaign of which something does not follow from its runs."""

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import pytest

from tests.simulated_campaign import COIN, Home, KilledError, Life
from thermite.errors import LedgerError
from thermite.harness.book import Draft
from thermite.harness.evidence import check_evidence
from thermite.harness.rig import Rig
from thermite.rig.start import spawner
from thermite.schema import event as e
from thermite.schema.strict import Strict

OFFERS: dict[str, dict[str, float]] = {"a": {"ms": 39.2}, "b": {"ms": 25}}


def one_life(tmp_path: Path, lie: Callable[[Strict], Strict]) -> Life:
    """A harness that is killed when its first attempt has ended, and lies as it is told."""
    life = Life(Home(tmp_path, {"ms": 40}, OFFERS))
    honest = life.book.append

    def append(*drafts: Draft) -> list[int]:
        return honest(*[msgspec_replaced(draft, lie(draft.data)) for draft in drafts])

    def killed(drafts: Sequence[Draft]) -> None:
        if any(isinstance(draft.data, e.AttemptEnded) for draft in drafts):
            raise KilledError

    life.book.append, life.book.committed = append, killed  # type: ignore[method-assign]
    assert not life.run()
    return life


def msgspec_replaced(draft: Draft, data: Strict) -> Draft:
    return Draft(data, draft.assignment, draft.lane, draft.actor, draft.cause, draft.command)


def the_truth(data: Strict) -> Strict:
    return data


def faster(data: Strict) -> Strict:
    """Records another T than the blocks have, once."""
    is_it = isinstance(data, e.Decision) and (data.stage, data.n) == ("screen", 3)
    return msgspec.structs.replace(data, T=0.5) if is_it else data


def better(data: Strict) -> Strict:
    """Records another D than the runs have, once."""
    is_it = isinstance(data, e.Block) and (data.stage, data.block) == ("screen", 1)
    return msgspec.structs.replace(data, D=0.25) if is_it else data


def test_an_honest_campaign_goes_on(tmp_path: Path) -> None:
    life = one_life(tmp_path, the_truth)
    check_evidence(life.book.state, life.home.rig.ledger)
    assert Life(life.home, seed=2).run()


@pytest.mark.parametrize(
    ("lie", "said"),
    [
        pytest.param(
            faster,
            r"ledger.db: event \d+, decision of attempt 1, does not follow from the runs of its"
            r" campaign: recorded is continue, n 3, ln E .*, T 0.5000000, and they lead to n 3, ln"
            r" E .*; a rig does not go on from it: run thermite audit --rejudge, and serve a backup"
            " or a new folder",
            id="a decision",
        ),
        pytest.param(better, "block of attempt 1, .*: recorded is block 1, D 0.25", id="a block"),
    ],
)
def test_a_campaign_that_does_not_follow_is_named_and_not_gone_on_from(
    tmp_path: Path, lie: Callable[[Strict], Strict], said: str
) -> None:
    life = one_life(tmp_path, lie)
    with pytest.raises(LedgerError, match=said):
        check_evidence(life.book.state, life.home.rig.ledger)


def test_a_rig_is_not_opened_on_it(home: Path) -> None:
    life = one_life(home / "made", faster)
    rig, keys = life.home.rig.state, life.home.rig.keys
    for name, raw in (("rig.key", life.home.key.pem(None)), ("coin.key", COIN)):
        (keys / name).write_bytes(raw)
        (keys / name).chmod(0o600)
    with (
        spawner(rig, isolation="none") as stages,
        pytest.raises(LedgerError, match="decision of attempt 1, does not follow"),
    ):
        Rig.open(rig, stages)


def test_a_campaign_that_has_ended_is_left_to_an_audit(tmp_path: Path) -> None:
    life = one_life(tmp_path, faster)
    assert Life(life.home, seed=2).run()
    check_evidence(Life(life.home).book.state, life.home.rig.ledger)
