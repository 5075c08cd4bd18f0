"""Judging again by the rule `exact-1`: values of the check that never vary."""

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.audit.retold import events, lies
from tests.simulated_campaign import Home, Life
from thermite.audit.promotion import export, verify
from thermite.audit.rejudge import rejudge
from thermite.schema import event as e
from thermite.schema.promotion import Made


def shows(acc: float, **said: object) -> dict[str, Any]:
    return {"check": {"line": {"pass": True, "acc": acc}}} | said


@pytest.fixture(scope="module")
def exact(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A campaign for a value of the check, whose second confirm block shows another value."""
    candidates = {
        "a-varies": shows(0.52),
        "b-overfit": shows(0.60, at={"192": shows(0.51)}),
        "c-better": shows(0.70),
    }
    objective = {"primary": {"metric": "accuracy"}, "min_effect": 0.01}
    folder = tmp_path_factory.mktemp("exact")
    home = Home(folder, {"ms": 40}, candidates, {"objective": objective})
    life = Life(home)
    # After the selftest's 18 runs: two to warm up, three blocks of two, four to warm up.
    life.stages.say_at = dict.fromkeys(range(30, 34), shows(0.9))
    assert life.run()
    return Path(shutil.copy(home.rig.ledger, folder))


def test_a_campaign_of_exact_values_follows_from_its_checks(exact: Path) -> None:
    assert rejudge(exact).differences == []
    told = [event.data for _, event in events(exact)]
    decided = [d for d in told if isinstance(d, e.Decision) and d.action != "continue"]
    assert [(d.attempt, d.stage, d.n, d.result, d.rule) for d in decided] == [
        (1, "screen", 3, None, "exact-1"),
        (1, "screen", 6, None, "signflip-2"),
        (1, "confirm", 10, "promoted", "signflip-2"),
        (2, "screen", 3, None, "exact-1"),
        (2, "confirm", 1, "overfit", "exact-1"),
        (3, "screen", 3, None, "exact-1"),
        (3, "confirm", 1, "promoted", "exact-1"),
        (None, "re_anchor", 20, None, "signflip-2"),
    ]
    assert [d.dropped for d in told if isinstance(d, e.Block) and d.dropped] == ["not_exact"]


@pytest.mark.parametrize(
    ("kind", "of", "changed", "what"),
    [
        pytest.param(e.Check, {"block": 1}, {"fields": {"acc": "0.9"}}, "block", id="a value"),
        pytest.param(
            e.Decision, {"rule": "exact-1"}, {"rule": "signflip-2"}, "decision", id="the rule"
        ),
        pytest.param(e.Decision, {"rule": "exact-1"}, {"lcb": None}, "decision", id="a bound"),
        pytest.param(e.Block, {"dropped": "not_exact"}, {"dropped": None}, "block", id="not exact"),
    ],
)
def test_an_exact_comparison_that_does_not_follow_is_found(
    exact: Path, kind: type, of: dict[str, object], changed: dict[str, object], what: str
) -> None:
    assert what in lies(events(exact), kind, of, **changed)


def test_an_exact_promotion_can_be_carried_away(exact: Path) -> None:
    seqs = [seq for seq, event in events(exact) if isinstance(event.data, e.ChampionPromoted)]
    made = Made(by="thermite test", at="2026-01-31T12:00:00Z")
    found = verify(msgspec.json.encode(export(exact, str(seqs[-1]), made=made)))
    assert (found.problem, found.summary.blocks.confirm) == (None, 1)


def test_the_second_verifier_agrees_on_exact_promotions(exact: Path) -> None:
    tool = Path(__file__).parents[2] / "tools/verify_ledger.py"
    done = subprocess.run(
        [sys.executable, "-I", str(tool), str(exact)], capture_output=True, text=True, check=False
    )
    lines = [line for line in done.stdout.splitlines() if "attempt" in line]
    assert [line.split()[0] for line in lines] == ["PASS", "PASS"], done.stdout
