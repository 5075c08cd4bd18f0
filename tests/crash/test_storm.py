"""A campaign whose supervisor, harness and spawner are killed again and again comes to the
same end as one that nobody disturbs.
"""

from collections import Counter
from pathlib import Path

from tests.crash.sleeper import EXPECTED, lay_out
from tests.crash.storm import Storm, plan, weather
from tests.served import ServedRig, served
from tests.serving import ended
from thermite.schema import event as e

SEED = 20261130
VICTIMS = {"harness": 12, "supervisor": 6, "spawner": 2}
UNSURE = ("not_better", "regressed")
PROMOTED = [name for name, verdict in EXPECTED.items() if verdict == "promoted"]


def results(rig: ServedRig) -> dict[str, str | None]:
    """What came of each proposal, in the end.

    On a very noisy rig "not better" may be clear of a slower one before "slower" is.
    """
    assert rig.assignment is not None
    attempts = rig.assignment.attempts.values()
    found = {str(a.started.proposal): a.result for a in attempts if a.result != "killed"}
    unsure = {name for name, result in found.items() if (result, EXPECTED[name]) == UNSURE}
    return found | dict.fromkeys(unsure, "regressed")


def assert_whole(rig: ServedRig) -> None:
    """One assignment, every proposal judged once, receipts whole, and a clean audit."""
    rig.until(lambda: list((rig.state_folder / "outbox").glob("*.finished.receipt.json")))
    rig.stop()
    assert rig.exit_codes()[-1] == 0, rig.said()
    assignment = rig.assignment
    assert assignment is not None
    kinds = Counter(type(event.data) for event in rig.events)
    assert kinds[e.AssignmentCreated] == kinds[e.CommandAccepted] == kinds[e.AssignmentEnded] == 1
    ends = Counter(
        event.data.attempt for event in rig.events if isinstance(event.data, e.AttemptEnded)
    )
    assert set(ends.values()) == {1}
    final = [str(a.started.proposal) for a in assignment.attempts.values() if a.result != "killed"]
    assert sorted(final) == sorted(EXPECTED)
    receipts = sorted(map(str, (rig.state_folder / "outbox").glob("*.receipt.json")))
    assert [path.split(".")[-3] for path in receipts] == ["accepted", "finished"]
    rig.told("receipts", "verify", *receipts, "--rig", "bench")
    ledger, outbox = rig.state_folder / "ledger.db", rig.state_folder / "outbox"
    assert rig.told("audit", str(ledger), "--against", str(outbox))["findings"] == []
    assert list((rig.state_folder / "inbox" / "new").iterdir()) == []


def test_a_campaign_in_a_storm_ends_as_one_that_nobody_disturbs(home: Path) -> None:
    with served(home) as rig:
        contract = lay_out(home)
        rig.serve()
        rig.know()
        rig.assign(contract)
        storm = Storm(rig, plan(SEED, VICTIMS, growth=7))

        def keep_up() -> None:
            if rig.spawner() is None:
                rig.serve()

        weather(storm, lambda: ended(rig), keep_up, most_s=480)
        assert not storm.left, "; ".join(storm.done)
        assert results(rig) == EXPECTED, "; ".join(storm.done)
        assert rig.assignment is not None
        names = [
            rig.assignment.attempts[p.attempt].started.proposal for p in rig.assignment.promotions
        ]
        assert names == PROMOTED
        assert_whole(rig)
