"""The doctor tries what it says: every level on this machine, and THERMITE_ISOLATION's force."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import thermite
from thermite.cli.rig_doctor import lines
from thermite.errors import InfrastructureError
from thermite.rig.doctor import Diagnosis, allow_namespaces, examine
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


@pytest.mark.skipif(os.getuid() != 0, reason="only root's rigs have users of their own")
def test_the_doctor_speaks_of_a_rig_that_serves_and_a_command_of_its_caller(
    found: Diagnosis, tmp_path: Path
) -> None:
    with spawner(tmp_path / "rig", isolation="none") as stages:
        assert "caller_is_root" in stages.isolation.gaps
        assert "harness_is_root" not in stages.isolation.gaps
    another = ["setpriv", "--reuid=1001", "--regid=1001", "--clear-groups"]
    another += ["env", sys.executable, "-P"]  # setpriv itself still has root's capabilities
    env = {"PYTHONPATH": str(Path(thermite.__file__).parents[1]), "PATH": os.defpath}
    starts = not subprocess.run(
        [*another, "-c", "import thermite.harness, supervisor"], env=env, check=False, cwd="/"
    ).returncode
    for one in (one for one in found.levels if one.had):
        has_users = one.level.startswith("users")
        are_root = {"harness_is_root", "supervisor_is_root"} & {*one.gaps}
        assert bool(are_root) is not (has_users and starts)
        assert "caller_is_root" not in one.gaps


@pytest.mark.parametrize(
    ("name", "value", "advice"),
    [
        pytest.param("kernel/apparmor_restrict_unprivileged_userns", "1", "userns=0", id="ubuntu"),
        pytest.param("kernel/unprivileged_userns_clone", "0", "userns_clone=1", id="debian"),
        pytest.param("user/max_user_namespaces", "0", "namespaces=15000", id="none allowed"),
        pytest.param("user/max_user_namespaces", "96365", "in a container", id="allowed"),
    ],
)
def test_who_wants_namespaces_is_told_which_setting_forbids_them(
    tmp_path: Path, name: str, value: str, advice: str
) -> None:
    (tmp_path / name).parent.mkdir()
    (tmp_path / name).write_text(f"{value}\n")
    (said,) = allow_namespaces(tmp_path)
    assert advice in said


def test_a_parser_gets_one_document() -> None:
    done = subprocess.run(COMMAND, capture_output=True, text=True, check=False)
    assert (done.returncode, json.loads(done.stdout)["uid"]) == (0, os.getuid())


def test_a_level_that_cannot_be_had_is_an_error_and_never_a_step_down(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "namespaces" if os.getuid() == 0 else "users"
    monkeypatch.setenv("THERMITE_ISOLATION", name)
    with (
        pytest.raises(InfrastructureError, match=f"isolation {name} can't be had: it"),
        spawner(tmp_path / "rig"),
    ):
        pass
