"""Words of all sizes pass through a campaign: a row stays small, what is large lies beside it."""

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.judge.job.simulated_desk import KIT
from tests.requirement import shows
from tests.simulated_campaign import Home, Life
from thermite.agent.brief import brief
from thermite.ledger.replay import recorded
from thermite.report import goal as report
from thermite.rig.stages import Stages
from thermite.rig.start import spawner
from thermite.schema.event import AgentFinished, GoalChecked, Verdict
from thermite.schema.kit import Verifier

WIDE = "\N{GOTHIC LETTER HWAIR}"
"""One character, four bytes."""
CUT = f"{WIDE * 500}…{WIDE * 1500}"
"""What a run's reason keeps of more than 2,000."""
MOST_ROW = 4 * 4000 + 1000
"""A verdict's 4,000 characters of four bytes, and what else is in its row."""
GOALS = 500
PRINTED_MIB = 200
LAST = 64 << 10
"""What is kept of a worker's output."""


def events(life: Life, kind: type) -> list[Any]:
    rows = recorded(life.home.rig.ledger)
    return [row.event.data for row in rows if isinstance(row.event.data, kind)]


def largest_row(life: Life) -> int:
    """The largest body but that of the contract, which its sender wrote."""
    rows = recorded(life.home.rig.ledger)
    return max(len(row.body) for row in rows if row.type != "assignment_created")


def said(characters: int) -> dict[str, object]:
    return {"check": {"line": {"pass": False, "reasons": [WIDE * characters]}}}


def goals_checked(folder: Path, small: int, large: int) -> Life:
    """A campaign of 500 goals, whose one candidate fails two cells of each in so many letters."""
    manifest = msgspec.structs.replace(
        KIT, verifiers={"both": Verifier(cells=["small", "large", "held"])}
    )
    verify = {"type": "code", "verifier": "both"}
    goals = [{"id": f"g{n}", "title": f"goal {n}", "verify": verify} for n in range(GOALS)]
    contract: dict[str, object] = {
        "campaign": "goal",
        "cells": [],
        "objective": None,
        "goals": goals,
    }
    candidate = {"ms": 20, "at": {"128": said(small), "256": said(large)}}
    life = Life(Home(folder, {"ms": 40}, {"a": candidate}, contract, manifest))
    assert life.run()
    return life


@shows("L12")
@pytest.mark.parametrize(
    ("small", "large", "kept"),
    [
        pytest.param(1999, 1999, [WIDE * 1999] * 2, id="4,000 with what joins them"),
        pytest.param(1999, 2000, [f"{WIDE * 1000}…{WIDE * 998}; {WIDE * 2000}"], id="one more"),
        pytest.param(
            4000,
            4000,
            [f"{CUT[:1000]}…{CUT[1004:]}; {CUT}"],
            id="each of 4,000, which is cut by itself before",
        ),
    ],
)
def test_500_goals_are_kept_told_and_reported_by_characters(
    tmp_path: Path, small: int, large: int, kept: list[str]
) -> None:
    life = goals_checked(tmp_path, small, large)
    checked = [one for one in events(life, GoalChecked) if one.passed == "visible"]
    assert [one.goal for one in checked] == [f"g{n}" for n in range(GOALS)]
    assert {tuple(one.reasons) for one in checked} == {tuple(kept)}
    told = brief(life.assignment, 0).split("# Goals")[1]
    assert told.count(f"{WIDE * 150}…{WIDE * 450}\n") == GOALS
    assert report.headline(life.assignment).startswith("a is the best: it meets 0 of 500 goals")
    lines = report.lines(life.assignment)
    assert [line for line in lines if not line.startswith(" ")] == [
        f"unmet  g{n} (weight 1): goal {n}" for n in range(GOALS)
    ]
    (verdict,) = events(life, Verdict)
    assert sum(map(len, verdict.reasons)) == 4001
    assert largest_row(life) < MOST_ROW


@pytest.fixture
def stages(tmp_path: Path) -> Iterator[Stages]:
    with spawner(tmp_path / "stages", isolation="none") as rig:
        yield rig


@shows("L12")
def test_a_workers_transcript_lies_beside_its_row(tmp_path: Path, stages: Stages) -> None:
    """Whatever a worker prints, 200 MiB here, its last 64 KiB are kept."""
    script = f"head -c {PRINTED_MIB << 20} /dev/zero | tr '\\0' x; printf '\\360\\220\\215\\210end'"
    workers = {"backend": "command", "options": {"command": ["/bin/sh", "-c", script]}}
    contract: dict[str, object] = {
        "campaign": "research",
        "cells": [],
        "held_out_cells": [],
        "objective": None,
        "budget": {"attempts": 1},
        "agents": {"workers": workers},
    }
    life = Life(Home(tmp_path, {"ms": 40}, {"a": {"ms": 30}}, contract, on_disk=True))
    life.bench = replace(life.bench, stages=stages)
    assert life.run()
    (finished,) = events(life, AgentFinished)
    kept = (life.home.rig.blobs / finished.transcript).read_bytes()
    assert kept == f"{WIDE}end".encode().rjust(LAST, b"x")
    assert finished.transcript == hashlib.sha256(kept).hexdigest()
    assert largest_row(life) < 1000
