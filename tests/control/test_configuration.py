"""What is set once: which of several places wins, and what no place may say."""

import os
from pathlib import Path

import pytest

from tests.requirement import shows
from thermite.control.configuration import Set, configured, misspelt_variables
from thermite.errors import UsageError


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A project in a repository, and a person's own folder."""
    (tmp_path / "project" / "deep" / "er").mkdir(parents=True)
    (tmp_path / "project" / ".git").mkdir()
    (tmp_path / "own" / "thermite").mkdir(parents=True)
    return tmp_path


def environment(place: Path, **more: str) -> dict[str, str]:
    return {"HOME": str(place), "XDG_CONFIG_HOME": str(place / "own"), **more}


@shows("C11")
def test_the_variable_goes_before_the_project_and_that_before_ones_own(place: Path) -> None:
    own, project = place / "own/thermite/config.toml", place / "project/thermite.toml"
    here = place / "project/deep/er"
    assert configured("rig", environment(place), here) is None
    own.write_text('rig = "own"\n')
    assert configured("rig", environment(place), here) == Set("own", str(own))
    project.write_text('rig = "project"\n')
    assert configured("rig", environment(place), here) == Set("project", str(project))
    told = environment(place, THERMITE_RIG="variable")
    assert configured("rig", told, here) == Set("variable", "THERMITE_RIG")
    empty = environment(place, THERMITE_RIG="")
    assert configured("rig", empty, here) == Set("project", str(project))


def test_a_path_is_relative_to_its_file(place: Path) -> None:
    (place / "project/thermite.toml").write_text('key = "keys/me.key"\n')
    found = configured("key", environment(place), place / "project/deep")
    assert found is not None
    assert found.value == str(place / "project/keys/me.key")


def test_no_file_above_the_repository_is_a_projects(place: Path) -> None:
    (place / "thermite.toml").write_text('rig = "elsewhere"\n')
    assert configured("rig", environment(place), place / "project/deep") is None


def test_without_xdg_ones_own_file_lies_below_home(place: Path) -> None:
    own = place / ".config/thermite/config.toml"
    own.parent.mkdir(parents=True)
    own.write_text('rig = "own"\n')
    assert configured("rig", {"HOME": str(place)}, place / "project") == Set("own", str(own))


@shows("C11")
@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param('rgi = "x"', "unknown key 'rgi': did you mean rig?", id="misspelt"),
        pytest.param('statte = "x"', "did you mean state?", id="another"),
        pytest.param('colour = "x"', "known are data, key,", id="nothing like it"),
        pytest.param("rig = 1", "rig must be a text", id="a number"),
        pytest.param('rig = ""', "rig must be a text that is not empty", id="empty"),
        pytest.param('rig = "a\\u0000"', "rig must be a text", id="NUL"),
        pytest.param("rig = ", "is not TOML", id="no TOML"),
        pytest.param("a = " + "[" * 5000, "is not TOML", id="deep"),
        pytest.param("#" * 70_000, "more than 65536 bytes", id="long"),
    ],
)
def test_what_a_file_may_not_say_is_refused_even_where_a_variable_wins(
    place: Path, text: str, said: str
) -> None:
    (place / "project/thermite.toml").write_text(text)
    told = environment(place, THERMITE_RIG="variable")
    with pytest.raises(UsageError, match=r"thermite\.toml") as raised:
        configured("rig", told, place / "project")
    assert said in str(raised.value)


@pytest.mark.parametrize("kind", ["folder", "dangling", "pipe"])
def test_what_is_no_plain_file_is_refused_or_not_there(place: Path, kind: str) -> None:
    file = place / "project/thermite.toml"
    if kind == "folder":
        file.mkdir()
    elif kind == "pipe":
        os.mkfifo(file)
    else:
        file.symlink_to("nowhere")
        assert configured("rig", environment(place), place / "project") is None
        return
    with pytest.raises(UsageError, match="no plain file"):
        configured("rig", environment(place), place / "project")


def test_a_misspelt_variable_is_seen() -> None:
    told = {"THERMITE_STAET": "x", "THERMITE_STATE": "y", "THERMITE_ISOLATION": "z", "PATH": ""}
    assert misspelt_variables(told) == {"THERMITE_STAET": "THERMITE_STATE"}
