"""A file that a command looks for and that is something else is named, and not waited for."""

import os
from pathlib import Path

import pytest

from thermite.cli.rig_serve import rig_settings
from thermite.cli.root import run
from thermite.command.signing_key import SigningKey
from thermite.errors import UsageError

PUBLIC = f"{SigningKey.generate().public.line('me')}\n"


@pytest.fixture(params=["pipe", "folder"])
def odd(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """What is no file; a test moves it to the place that it asks about."""
    path = tmp_path / "odd"
    if request.param == "pipe":
        os.mkfifo(path)
    else:
        path.mkdir()
    return path


@pytest.mark.parametrize(
    ("place", "words"),
    [
        pytest.param("rig.toml", ("rig", "selftest", "--state", "."), id="rig selftest"),
        pytest.param("settings.toml", ("settings", "mcp", "list", "--data", "."), id="settings"),
        pytest.param("rigs.toml", ("rig", "list", "--data", "."), id="known rigs"),
        pytest.param("thermite.toml", ("settings", "show"), id="project's configuration"),
        pytest.param("kit.json", ("kit", "check", "."), id="kit"),
    ],
)
def test_what_is_no_file_is_named(
    odd: Path,
    place: str,
    words: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    here = tmp_path / "here"
    here.mkdir()
    odd.rename(here / place)
    monkeypatch.chdir(here)
    assert run(list(words)) in {2, 4}
    said = "".join(capsys.readouterr())
    assert place in said
    assert "no plain file" in said or "not a plain file" in said


def test_a_rig_that_would_serve_looks_at_its_rig_toml_first(odd: Path, tmp_path: Path) -> None:
    (tmp_path / "rig").mkdir()
    odd.rename(tmp_path / "rig/rig.toml")
    with pytest.raises(UsageError, match="is no plain file, as a rig's settings are"):
        rig_settings(tmp_path / "rig", None)


def test_a_name_that_rig_toml_does_not_give_is_refused(tmp_path: Path) -> None:
    (tmp_path / "rig.toml").write_text('name = "old"\n')
    with pytest.raises(UsageError, match="names this rig old, and --name says 'new'"):
        rig_settings(tmp_path, "new")
    assert (tmp_path / "rig.toml").read_text() == 'name = "old"\n'
    assert rig_settings(tmp_path, "old").name == rig_settings(tmp_path, None).name == "old"


@pytest.mark.parametrize("state", ["rig", "taken"])
def test_a_rig_with_a_wrong_trust_or_folder_is_refused_in_words_and_leaves_nothing(
    state: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "taken").write_text("")
    (tmp_path / "me.pub").write_text(PUBLIC)
    trust = tmp_path / ("me.pub" if state == "taken" else "me.pup")
    assert run(["rig", "serve", "--state", str(tmp_path / state), "--trust", str(trust)]) == 2
    why = (
        f"{tmp_path}/taken can't be a rig's folder: File exists"
        if state == "taken"
        else f"{trust} can't be read: No such file or directory"
    )
    assert capsys.readouterr().err == f"error: {why}\n"
    assert not (tmp_path / "rig").exists()
