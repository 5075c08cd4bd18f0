"""`thermite campaign`: what each command signs, and how it ends."""

import base64
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.cli.operator_desk import Desk, known_desk
from thermite.cli.root import run
from thermite.schema.command import Outcome

WHOLE = "ab" * 16


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    return known_desk(tmp_path_factory.mktemp("desk"))


def give(desk: Desk, *args: str) -> int:
    """Run a command that waits for no answer."""
    where = ["--rig", "bench", "--data", str(desk.folder / "control"), "--timeout-s", "0"]
    return run(["campaign", *args, *where])


def new_orders(desk: Desk) -> list[dict[str, Any]]:
    found = []
    for path in (desk.folder / "rig" / "inbox" / "new").glob("*.cmd.json"):
        found.append(json.loads(base64.b64decode(json.loads(path.read_bytes())["payload"])))
        path.unlink()
    return found


@pytest.mark.parametrize(
    ("args", "kind", "body"),
    [
        pytest.param(["pause", WHOLE], "pause_campaign", {}, id="pause"),
        pytest.param(["resume", WHOLE], "resume_campaign", {}, id="resume"),
        pytest.param(["stop", WHOLE], "stop_campaign", {"now": False}, id="stop"),
        pytest.param(["stop", WHOLE, "--now"], "stop_campaign", {"now": True}, id="stop now"),
        pytest.param(
            ["steer", WHOLE, "try tiles", "--lane", "1"],
            "steer_campaign",
            {"text": "try tiles", "lane": 1},
            id="steer",
        ),
        pytest.param(
            ["resolve", WHOLE, "7", "reject"],
            "resolve_hold",
            {"attempt": 7, "action": "reject"},
            id="resolve",
        ),
        pytest.param(
            ["extend", WHOLE, "attempts=80", "judge_s=7200"],
            "extend_budget",
            {"budget": {"attempts": 80.0, "judge_s": 7200.0}},
            id="extend",
        ),
        pytest.param(
            ["review", WHOLE, "3", "clear", "unmet", "too terse"],
            "vote_review",
            {"attempt": 3, "goal": "clear", "vote": "unmet", "reason": "too terse"},
            id="review",
        ),
    ],
)
def test_each_command_signs_its_order(
    desk: Desk, args: Sequence[str], kind: str, body: dict[str, Any]
) -> None:
    assert give(desk, *args) == 7
    [order] = new_orders(desk)
    assert order["type"] == kind
    assert order["body"] == {"assignment": WHOLE, **body}


def test_a_campaign_that_was_not_sent_is_not_found(
    desk: Desk, capsys: pytest.CaptureFixture[str]
) -> None:
    assert give(desk, "pause", "4f2a") == 3
    assert "no campaign '4f2a'" in capsys.readouterr().err
    assert new_orders(desk) == []


def test_the_first_digits_of_what_was_sent_are_enough(tmp_path: Path) -> None:
    desk = known_desk(tmp_path)
    sent = desk.assign()
    new_orders(desk)
    [listed] = desk.told("campaign", "list")["campaigns"]
    assert (listed["assignment"], listed["outcome"]) == (sent["assignment"], "no answer yet")
    assert give(desk, "pause", sent["assignment"][:6]) == 7
    [order] = new_orders(desk)
    assert order["body"] == {"assignment": sent["assignment"]}


def test_a_campaign_that_is_over_is_called_ended_as_in_its_status(tmp_path: Path) -> None:
    """It was `finished` here, which is what a receipt calls the order, and `ended` there."""
    desk = known_desk(tmp_path)
    sent = desk.assign()
    [order] = desk.rig.dropped(".cmd.json")
    steps: tuple[tuple[Outcome, str], ...] = (("accepted", "accepted"), ("finished", "ended"))
    for outcome, listed in steps:
        desk.rig.answer(order.read_bytes(), outcome)
        [told] = desk.told("campaign", "list")["campaigns"]
        assert (told["assignment"], told["outcome"]) == (sent["assignment"], listed)
    assert desk.run("campaign", "list").stdout.endswith("  ended\n")


def test_a_limit_that_is_none_is_a_usage_error(desk: Desk) -> None:
    assert give(desk, "extend", WHOLE, "attempts") == 2
    assert new_orders(desk) == []
