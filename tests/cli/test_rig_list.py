"""The list of rigs says of each what its last card said, no more and no less."""

from pathlib import Path

from tests.cli.operator_desk import Desk


def test_a_graded_rig_is_not_called_untested(tmp_path: Path) -> None:
    desk = Desk(tmp_path / "desk")
    for name, said in {
        "sighted": {},
        "graded": {"sees": None},
        "new": {"grade": None, "sees": None},
    }.items():
        desk.rig.write_card(**said)
        desk.told("rig", "add", name, "--inbox", "rig/inbox")
    twice = desk.run("rig", "add", "again", "--inbox", "rig/inbox").stderr
    assert "this is the rig that is known as sighted, graded, new, too" in twice
    once = Desk(tmp_path / "other").run("rig", "add", "only", "--inbox", "rig/inbox").stderr
    assert "known as" not in once
    lines = [line.split("  ") for line in desk.run("rig", "list").stdout.splitlines()]
    assert {line[0]: line[4] for line in lines} == {
        "sighted": "graded quiet, sees ≥ 1.5 %",
        "graded": "graded quiet",
        "new": "no selftest",
        "again": "no selftest",
    }
