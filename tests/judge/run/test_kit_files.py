"""What a run may see of the kit."""

from pathlib import Path

import pytest

from tests.requirement import shows
from thermite.errors import InfrastructureError
from thermite.judge.run.kit_files import gather


def kit(tmp_path: Path) -> Path:
    folder = tmp_path / "kit"
    (folder / "data" / "deep").mkdir(parents=True)
    (folder / "data" / "deep" / "table").write_text("1 2 3")
    (folder / "run.sh").write_text("#!/bin/sh\n")
    (folder / "run.sh").chmod(0o755)
    (folder / "answers").write_text("42")
    (folder / "data" / "empty").mkdir()
    (tmp_path / "into").mkdir()
    return folder


@shows("K-022", "K-106")
def test_only_what_is_named_is_copied(tmp_path: Path) -> None:
    gather(kit(tmp_path), ["data", "run.sh", "data"], tmp_path / "into")
    into = tmp_path / "into"
    assert sorted(str(path.relative_to(into)) for path in into.rglob("*")) == [
        "data",
        "data/deep",
        "data/deep/table",
        "data/empty",
        "run.sh",
    ]
    assert (into / "run.sh").stat().st_mode & 0o111
    assert not (into / "data" / "deep" / "table").stat().st_mode & 0o111


def test_a_file_deep_in_the_kit_keeps_its_path(tmp_path: Path) -> None:
    gather(kit(tmp_path), ["data/deep/table"], tmp_path / "into")
    assert (tmp_path / "into" / "data" / "deep" / "table").read_text() == "1 2 3"


@pytest.mark.parametrize(
    ("path", "why"),
    [
        pytest.param("none", "kit run.copy: none is not in the kit", id="missing"),
        pytest.param("run.sh/x", "kit run.copy: run.sh/x is not in the kit", id="below a file"),
        pytest.param(
            "data",
            "kit run.copy: not a regular file or directory: data/link",
            id="a link inside",
        ),
    ],
)
@shows("K-107", "K-108")
def test_what_is_no_plain_file_is_refused(tmp_path: Path, path: str, why: str) -> None:
    folder = kit(tmp_path)
    (folder / "data" / "link").symlink_to("../answers")
    with pytest.raises(InfrastructureError) as raised:
        gather(folder, [path], tmp_path / "into")
    assert str(raised.value) == why
