"""The doctor tries what it says: every level on this machine, and THERMITE_ISOLATION's force."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from thermite.cli.rig_doctor import lines
from thermite.errors import InfrastructureError
from thermite.rig.doctor import Diagnosis, examine
from thermite.rig.start import spawner
from thermite.schema.stage import LevelName

COMMAND = [sys.executable, "-m", "thermite", "rig", "doctor", "--json"]


@pytest.fixture(scope="module")
def found() -> Diagnosis:
    return examine()


def test_every_level_is_there_and_the_one_that_a_rig_takes_is_named(
    found: Diagnosis, tmp_path: Path
) -> None:
    levels = {one.level: one for one in found.levels}
    assert set(levels) == set(LevelName.__args__)  # type: ignore[attr-defined]
    assert levels["none"].had
    with spawner(tmp_path / "rig", isolation="auto") as stages:
        assert found.takes == stages.isolation.level
    assert all(one.why_not for one in found.levels if not one.had)


def test_what_was_tried_is_told_and_every_gap_has_its_remedy(found: Diagnosis) -> None:
    for one in found.levels:
        assert bool(one.canaries) == one.had
        assert [text.partition(":")[0] for text in one.to_do if one.had] == one.gaps
        assert "no remedy is known" not in " ".join(one.to_do)
    read = found.levels[0].canaries["run-0: read kit"]
    assert any(f"{read}: run-0: read kit" in line for line in lines(found)) == (read != "blocked")


def test_a_parser_gets_one_document() -> None:
    done = subprocess.run(COMMAND, capture_output=True, text=True, check=False)
    assert (done.returncode, json.loads(done.stdout)["uid"]) == (0, os.getuid())


def test_a_level_that_cannot_be_had_is_an_error_and_never_a_step_down(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("THERMITE_ISOLATION", "namespaces")
    with (
        pytest.raises(InfrastructureError, match="not one of auto, none, users"),
        spawner(tmp_path / "rig"),
    ):
        pass
