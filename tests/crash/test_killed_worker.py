"""What a worker had said when its harness, or all of its rig, was killed is kept, as partial."""

from functools import partial
from pathlib import Path
from typing import Any

from tests.crash.sleeper import lay_out
from tests.requirement import shows
from tests.served import ServedRig, served
from tests.serving import ended
from thermite.rig.output_log import read_log
from thermite.schema.event import BudgetSpent

SCRIPT = 'echo "attempt $THERMITE_ATTEMPT begins"; exec sleep 600'
CONTRACT: dict[str, Any] = {
    "schema_version": 1,
    "name": "said",
    "campaign": "research",
    "task": "say that you begin",
    "project": {"repo": "naps", "commit": "HEAD", "editable": ["program.sh"]},
    "agents": {"workers": {"backend": "command", "options": {"command": ["sh", "-c", SCRIPT]}}},
    "isolation": "any",
}


def words(number: int) -> bytes:
    return b"attempt %d begins\n" % number


def is_at_work(rig: ServedRig, number: int) -> bool:
    assignment = rig.assignment
    if assignment is None:
        return False
    log = rig.state_folder / "blobs" / f".said-{assignment.id}-{number}"
    return read_log(log) == words(number)


def spent_on(rig: ServedRig, number: int) -> float:
    told = [event.data for event in rig.events if isinstance(event.data, BudgetSpent)]
    return sum(one.amounts["wall_s"] for one in told if one.attempt == number)


@shows("L10")
def test_what_a_worker_had_said_outlives_kill_9_and_is_called_partial(home: Path) -> None:
    with served(home) as rig:
        contract = lay_out(home, candidates={}, contract=CONTRACT)
        rig.serve()
        rig.know()
        rig.told("assign", str(contract), "--rig", "bench")
        for number, victim in ((1, "harness"), (2, "spawner")):
            rig.until(partial(is_at_work, rig, number))
            assert rig.kill(victim)
            if victim == "spawner":
                rig.until(lambda: rig.exit_codes() == [-9])
                rig.serve()
        rig.until(partial(is_at_work, rig, 3))
        assert rig.assignment is not None
        rig.told("campaign", "stop", rig.assignment.id, "--now", "--rig", "bench")
        rig.until(partial(ended, rig))
        rig.stop()
        state = ["--state", str(rig.state_folder)]
        for number, is_partial in ((1, True), (2, True), (3, False)):
            worker = rig.told("show", str(number), *state)["worker"]
            assert (worker["status"], worker["partial"]) == ("killed", is_partial)
            assert spent_on(rig, number) > 0, "a kill gives no time back to the budget"
            kept = rig.state_folder / "blobs" / worker["transcript"]
            assert kept.read_bytes() == words(number)
        assert "what it had said by then is blobs/" in rig.run("show", "1", *state).stdout
        assert list((rig.state_folder / "blobs").glob(".s*-*")) == []
        outbox = str(rig.state_folder / "outbox")
        assert rig.told("audit", str(rig.state_folder), "--against", outbox)["findings"] == []
