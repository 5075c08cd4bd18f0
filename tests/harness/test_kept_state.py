"""A folder for `thermite judge --state`: new, empty or its own, and nobody else's."""

import os
from pathlib import Path

import pytest

from thermite.cli.root import run
from thermite.errors import UsageError
from thermite.harness.kept_state import check_kept_state


@pytest.fixture
def judged(tmp_path: Path) -> list[Path]:
    """The folders of a kit and a project."""
    for name in ("kit", "project"):
        (tmp_path / name / "inner").mkdir(parents=True)
    return [tmp_path / "kit", tmp_path / "project"]


@pytest.mark.parametrize(
    "names",
    [
        pytest.param(None, id="not there"),
        pytest.param([], id="empty"),
        pytest.param(["keys", "store", "stages"], id="a judge was killed before it had a ledger"),
        pytest.param(["ledger.db", "keys", "views.db", "notes.txt"], id="kept before"),
    ],
)
def test_such_a_folder_may_keep_the_state(
    names: list[str] | None, judged: list[Path], tmp_path: Path
) -> None:
    state = tmp_path / "state"
    for name in names or []:
        (state / name).mkdir(parents=True)
    if names == []:
        state.mkdir()
    check_kept_state(state, judged)


@pytest.mark.parametrize(
    ("names", "said"),
    [
        pytest.param(["rig.toml", "ledger.db"], "is a rig's, it has rig.toml", id="a rig"),
        pytest.param(["inbox"], "is a rig's, it has inbox", id="a rig without its settings"),
        pytest.param(["ledger.db", "outbox"], "is a rig's, it has outbox", id="a served one"),
        pytest.param(["notes.txt"], "is not empty and was not made by", id="somebody else's"),
        pytest.param(["keys", "notes.txt"], "it has 'notes.txt'", id="keys of another program"),
        pytest.param([".git"], "it has '.git'", id="a repository"),
    ],
)
def test_such_a_folder_is_refused(
    names: list[str], said: str, judged: list[Path], tmp_path: Path
) -> None:
    for name in names:
        (tmp_path / "state" / name).mkdir(parents=True)
    with pytest.raises(UsageError, match=said):
        check_kept_state(tmp_path / "state", judged)


@pytest.mark.parametrize(
    ("state", "said"),
    [
        pytest.param("project", "is inside", id="the project"),
        pytest.param("project/inner/state", "is inside", id="below the project"),
        pytest.param("kit/state", "is inside", id="below the kit"),
        pytest.param("link/state", "is inside", id="through a link"),
        pytest.param("kit/../project/state", "is inside", id="through another folder"),
        pytest.param(".", "which is judged, is inside", id="around all of it"),
    ],
)
def test_a_part_of_what_is_judged_keeps_nothing(
    state: str, said: str, judged: list[Path], tmp_path: Path
) -> None:
    (tmp_path / "link").symlink_to("project")
    with pytest.raises(UsageError, match=said):
        check_kept_state(tmp_path / state, judged)


def test_a_link_to_another_ledger_is_refused(judged: list[Path], tmp_path: Path) -> None:
    state = tmp_path / "state"
    state.mkdir()
    (state / "ledger.db").symlink_to(tmp_path / "rig" / "ledger.db")
    with pytest.raises(UsageError, match="is a link"):
        check_kept_state(state, judged)


@pytest.mark.parametrize("state", ["project/state", "champion/state", "kit/state", "rig"])
def test_the_command_asks_before_it_does_anything(
    state: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("project", "champion", "kit", "rig/inbox"):
        (tmp_path / name).mkdir(parents=True)
    before = sorted(os.walk(tmp_path))
    argv = [str(tmp_path / "project"), "--kit", str(tmp_path / "kit")]
    argv += ["--champion", str(tmp_path / "champion"), "--state", str(tmp_path / state)]
    assert run(["judge", *argv]) == 2
    assert capsys.readouterr().err.startswith(f"error: {tmp_path / state} is ")
    assert sorted(os.walk(tmp_path)) == before
