"""`thermite status` and `watch` never show as running what a dead harness left behind."""

import io
import json
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.requirement import shows
from tests.simulated_campaign import Home, Life
from thermite.cli.exits import CommandEnds
from thermite.cli.follow import Follower
from thermite.cli.output import Output
from thermite.cli.root import run
from thermite.cli.watch import watch
from thermite.ledger.replay import Recorded, recorded


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A rig whose harness was killed while it judged the first attempt."""
    made = Home(tmp_path, {"ms": 100}, {"01-fast": {"ms": 80}})
    assert not Life(made).run(die_at=14)
    return made


def status(ledger: Path, capsys: pytest.CaptureFixture[str]) -> tuple[dict[str, Any], str]:
    assert run(["status", "--ledger", str(ledger), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert run(["status", "--ledger", str(ledger)]) == 0
    return told, capsys.readouterr().out


@shows("L11", "U10")
def test_what_a_dead_harness_left_is_interrupted_and_as_of_its_last_event(
    home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    told, text = status(home.rig.ledger, capsys)
    (one,) = told["assignments"]
    assert (told["served"], one["status"]) == (False, "interrupted")
    assert one["now"].startswith("interrupted at: attempt 1 (01-fast): ")
    assert told["as_of"] == [row.event.at for row in recorded(home.rig.ledger)][-1]
    served = "no rig is served from this ledger now; a campaign goes on when one is"
    assert f"as of {told['as_of']}: {served}\n" in text
    assert "running" not in text

    living = Life(home)  # has the ledger, as a harness that was started again
    told, text = status(home.rig.ledger, capsys)
    assert (told["served"], told["assignments"][0]["status"]) == (True, "running")
    assert f"as of {told['as_of']}, and the rig is served" in text
    assert living.run()
    told, text = status(home.rig.ledger, capsys)
    assert (told["served"], told["assignments"][0]["status"]) == (False, "ended")
    assert ": no rig is served from this ledger now\n" in text, "and nothing waits for one"
    assert told["assignments"][0]["verdicts"] == {"promoted": 1}


def test_an_attempt_under_way_is_shown_in_words(
    home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["show", "1", "--ledger", str(home.rig.ledger)]) == 0
    assert capsys.readouterr().out.splitlines()[1] == "judging: the judge has not finished"


@shows("U10")
def test_of_a_copy_it_is_not_said_whether_a_rig_is_served(
    home: Home, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = tmp_path / "copy.db"
    shutil.copy(home.rig.ledger, copy)
    told, text = status(copy, capsys)
    assert (told["served"], told["assignments"][0]["status"]) == (None, "running")
    assert f"as of {told['as_of']}\n" in text


class TwiceTold(Follower):
    """A ledger with a campaign that has ended and one that has begun, and ends while we wait."""

    def __init__(self, ledger: Path) -> None:
        super().__init__(ledger)
        rows = list(super().new())
        self.left = [[*rows, *(row for row in rows if row.type == "assignment_created")]]
        self.later = [row for row in rows if row.type == "assignment_ended"]

    def new(self) -> Iterator[Recorded]:
        yield from self.left.pop()

    def wait(self) -> None:
        self.left.append([self.later.pop()])


def test_the_end_of_an_earlier_campaign_is_not_the_one_that_a_watch_waits_for(home: Home) -> None:
    assert Life(home).run()
    out = io.StringIO()
    follower = TwiceTold(home.rig.ledger)
    watch(Output(out=out, err=io.StringIO()), follower, until="ended")
    assert follower.later == []
    assert out.getvalue().count("campaign ended (") == 2


@pytest.mark.parametrize(
    ("is_served", "words"),
    [
        pytest.param(True, "attempt 1 (01-fast): ", id="U7-served"),
        pytest.param(False, "no rig is served from this ledger now; ", id="U7+L11-dead"),
    ],
)
def test_a_watch_speaks_while_nothing_is_finished(
    home: Home, words: str, *, is_served: bool
) -> None:
    living = Life(home) if is_served else None
    errors = io.StringIO()
    output = Output(out=io.StringIO(), err=errors)
    with pytest.raises(CommandEnds, match="nothing ended in the time given"):
        watch(
            output,
            Follower(home.rig.ledger),
            until="ended",
            deadline=time.monotonic() + 0.5,
            every_s=0.01,
        )
    assert len(errors.getvalue().splitlines()) > 1
    assert all(words in line for line in errors.getvalue().splitlines())
    if living is not None:
        living.ledger.close()
