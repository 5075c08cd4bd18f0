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
    lines = [line.split("  ") for line in desk.run("rig", "list").stdout.splitlines()]
    assert {line[0]: line[4] for line in lines} == {
        "sighted": "graded quiet, sees ≥ 1.5 %",
        "graded": "graded quiet",
        "new": "no selftest",
    }
