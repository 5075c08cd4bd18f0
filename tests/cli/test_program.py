"""How thermite is named to a person: by what works in his shell, from where he stands."""

import shlex
import subprocess
from pathlib import Path

import pytest

from thermite.cli.program import by_name, from_here, near, program, typed


def said(command: str, cwd: Path) -> str:
    return subprocess.check_output(["sh", "-c", command], cwd=cwd, text=True, env={"PATH": "/bin"})


def test_what_is_typed_is_this_very_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.chdir(tmp_path)  # whole from there, where it lies below no current folder
    argv = program()
    assert shlex.split(typed())[-1] == argv[-1]
    monkeypatch.chdir(Path(argv[0]).parent.parent)
    assert typed().startswith(f"{Path(argv[0]).parent.name}/")
    monkeypatch.setenv("PATH", str(Path(argv[0]).parent))
    assert (typed() == "thermite") == (Path(argv[0]).name == "thermite")


def test_another_thermite_on_the_path_is_not_taken_for_this_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "thermite"
    other.write_text("#!/bin/sh\n")
    other.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert typed() != "thermite"


def test_a_path_is_short_below_the_current_folder_and_whole_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert near(tmp_path / "a/b") == "a/b"
    assert near(Path("a/../b")) == "b"
    assert near(tmp_path.parent) == str(tmp_path.parent)


@pytest.mark.parametrize("name", ["demo", "my demo", "$(touch hit)'\""])
def test_a_shell_that_goes_elsewhere_still_finds_the_path(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert said(f'x={from_here(tmp_path / name)}; cd /; printf %s "$x"', tmp_path) == str(
        tmp_path / name
    )
    assert list(tmp_path.iterdir()) == []


def test_after_it_the_bare_name_is_this_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    argv = program()
    if argv[1:]:
        assert by_name() == f"alias thermite={shlex.quote(shlex.join(argv))}"
    else:
        found = said(f"{by_name()}; cd /; command -v thermite", tmp_path).strip()
        assert Path(found).resolve() == Path(argv[0]).resolve()
