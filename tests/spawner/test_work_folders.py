"""Work folders: what is placed in one, what is collected of it, and that it goes."""

import os
from pathlib import Path

import pytest

from tests.requirement import shows
from tests.spawner.conftest import WIDE, Runner
from thermite.errors import InfrastructureError
from thermite.rig.stages import Stages
from thermite.schema.stage import Entry


@shows("K-135")
def test_a_slots_folder_is_gone_after_its_lending(rig: Stages) -> None:
    with rig.slot("run-0") as slot:
        slot.place([Entry(path=b"a/b/c", kind="file", data=b"1")])
        folder = slot.folder
        assert (folder / "a/b/c").read_bytes() == b"1"
    assert not folder.exists()


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        pytest.param(b"../x", "file", id="climbs out"),
        pytest.param(b"/etc/x", "file", id="absolute"),
        pytest.param(b"a//b", "file", id="empty component"),
        pytest.param(b"", "folder", id="empty"),
    ],
)
def test_placing_never_leaves_the_work_folder(rig: Stages, path: bytes, kind: str) -> None:
    with rig.slot("run-0") as slot, pytest.raises(InfrastructureError, match="plain relative"):
        slot.place([Entry(path=path, kind=kind)])  # type: ignore[arg-type]


def test_placing_never_follows_a_link(rig: Stages, tmp_path: Path) -> None:
    target = tmp_path / "x"
    target.mkdir()
    link = Entry(path=b".kit", kind="link", data=os.fsencode(target))
    with rig.slot("run-0") as slot, pytest.raises(InfrastructureError, match="place in run-0"):
        slot.place([link, Entry(path=b".kit/secret", kind="file", data=b"1")])
    assert list(target.iterdir()) == []


@shows("K-130")
def test_outputs_are_copied_and_hashed(run: Runner, tmp_path: Path) -> None:
    run.sh("mkdir -p out/d; printf hello > out/d/f; printf x > out/x; chmod 755 out/x; umask 0")
    into = tmp_path / "into"
    into.mkdir()
    got = run.slot.collect(["out/"], into, WIDE)
    assert (got.problems, got.missing) == ([], [])
    assert [(one.path, one.mode, one.size) for one in got.files] == [
        ("out/d/f", 0o444, 5),
        ("out/x", 0o555, 1),
    ]
    assert got.files[0].sha256.startswith("2cf24dba5fb0a30e26e83b2ac5b9e29e")
    assert (into / "out/d/f").read_bytes() == b"hello"


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        pytest.param("ln -s /etc/passwd out/a", "out/a is a symbolic link", id="link"),
        pytest.param("ln -s nowhere out/a", "out/a is a symbolic link", id="D54-dangling link"),
        pytest.param("ln -s .. out/d", "out/d is a symbolic link", id="link to a folder"),
        pytest.param("mkfifo out/a", "out/a is a named pipe", id="fifo"),
        pytest.param(
            "echo 1 > b; ln b out/a", "out/a is a hard link: the file has 2 names", id="hard link"
        ),
        pytest.param(
            "python3 -c 'import socket; socket.socket(1).bind(\"out/a\")'",
            "out/a is a socket",
            id="socket",
        ),
        pytest.param(
            "truncate -s 1T out/a",
            "out/a takes the outputs over 1048576 bytes (1 MiB)",
            id="sparse",
        ),
        pytest.param(
            "for i in $(seq 101); do echo > out/$i; done", "more than 100 files", id="entries"
        ),
        pytest.param(
            "mkdir -p out/$(yes d | head -33 | tr '\\n' '/')",
            "is nested deeper than 32 levels",
            id="nesting",
        ),
        pytest.param(
            "printf x > \"$(printf 'out/\\033[31m')\"; ln -s x out/b", "out/b is", id="esc"
        ),
    ],
)
@shows("K-131")
def test_refused_outputs_are_named_and_nothing_is_kept(
    run: Runner, tmp_path: Path, command: str, problem: str
) -> None:
    result = run.sh(f"mkdir out; {command}")
    assert result.exit_code == 0, result.stderr
    into = tmp_path / "into"
    into.mkdir()
    got = run.slot.collect(["out/"], into, WIDE)
    assert problem in "; ".join(got.problems)
    assert list(into.iterdir()) == []


@shows("K-131")
def test_a_link_on_the_way_to_an_output_is_refused(run: Runner, tmp_path: Path) -> None:
    run.sh("mkdir real; echo 1 > real/a; ln -s real out")
    into = tmp_path / "into"
    into.mkdir()
    got = run.slot.collect(["out/a", "gone"], into, WIDE)
    assert got.problems == ["out is a symbolic link"]
    assert got.missing == ["gone"]


def test_an_unreadable_output_folder_is_no_traceback(run: Runner, tmp_path: Path) -> None:
    run.sh("mkdir -p out/d; echo 1 > out/d/f; chmod 0 out/d/f out/d")
    into = tmp_path / "into"
    into.mkdir()
    got = run.slot.collect(["out"], into, WIDE)
    assert [one.path for one in got.files] == ["out/d/f"] or got.problems


def test_the_first_stage_does_not_lend_its_folder_to_a_second(rig: Stages) -> None:
    with (
        rig.slot("run-0"),
        pytest.raises(InfrastructureError, match="has the work folder"),
        rig.slot("run-0"),
    ):
        pass
    with pytest.raises(InfrastructureError, match="there is no slot 'nope'"), rig.slot("nope"):
        pass
