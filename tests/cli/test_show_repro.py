"""The script of `thermite show --repro`: it finds what the rig keeps, and asks what was asked."""

import copy
import os
import shlex
import subprocess
from pathlib import Path

import msgspec
import pytest

from tests.golden.make_promotion import make
from thermite.campaign.fold import fold
from thermite.campaign.state import Assignment, State
from thermite.cli.exits import CommandEnds, Exit
from thermite.cli.follow import Follower
from thermite.cli.root import run
from thermite.cli.show import named
from thermite.kit.git import git
from thermite.ledger.replay import recorded
from thermite.report.attempt import repro
from thermite.schema.contract import Contract
from thermite.schema.contract_text import read_contract

OTHER_UID = 4242
"""Nobody's here: stands for the user of its own that a rig leases."""


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A rig's folder whose repositories, as root, belong to another user."""
    state = make(tmp_path_factory.mktemp("home with blanks")).parent
    kit = campaign(state).kit
    assert kit is not None
    git(state / "repos/kit-tiny.git", "update-ref", f"refs/thermite/kept/{kit.commit}", kit.commit)
    if os.geteuid() == 0:
        for folder, _, files in os.walk(state / "repos"):
            for name in ("", *files):
                os.chown(Path(folder) / name, OTHER_UID, OTHER_UID)
    return state


def campaign(state: Path) -> Assignment:
    now = State()
    for row in recorded(state / "ledger.db"):
        fold(now, row.seq, row.event)
    return next(iter(now.assignments.values()))


def ran(script: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    home = folder / "home"
    home.mkdir(exist_ok=True)
    return subprocess.run(
        ["sh"],
        input="\n".join(script),
        env={"PATH": os.environ["PATH"], "HOME": str(home), "GIT_CONFIG_NOSYSTEM": "1"},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


def test_it_fetches_from_another_users_repositories_and_changes_no_setting(
    rig: Path, tmp_path: Path
) -> None:
    found = campaign(rig)
    script = repro(str(rig / "repos"), ["echo", "would run"], found, found.attempts[1])
    for _ in range(2):  # a second time is a folder more, never a mixture
        done = ran(script, tmp_path)
        assert (done.returncode, done.stderr) == (0, "")
    assert list((tmp_path / "home").iterdir()) == []
    folders = list(tmp_path.glob("attempt-1-*"))
    assert len(folders) == 2
    assert (folders[0] / "project/program.json").read_text() == '{"ms": 80}'
    assert (folders[0] / "kit/kit.json").is_file()
    base = found.attempts[1].started.base
    asked = f"would run judge project --kit kit --champion {base} --contract contract.json"
    assert done.stdout.splitlines() == [asked]


def test_of_a_goal_campaign_it_promises_no_more_than_it_does(rig: Path) -> None:
    found = campaign(rig)
    found.contract = msgspec.structs.replace(found.contract, objective=None)
    script = repro(str(rig / "repos"), ["thermite"], found, found.attempts[1])
    assert "It decides no goal: only a campaign does." in " ".join(script)
    assert not any("champion" in line for line in script)
    assert script[-1].startswith("thermite judge project --kit kit")


def test_digits_that_begin_two_campaigns_are_refused_and_another_campaign_is_hinted_at(
    rig: Path,
) -> None:
    follower = Follower(rig / "ledger.db")
    assert list(follower.new())
    [first] = follower.state.assignments.values()
    twin = copy.copy(first)
    twin.id = f"{first.id[:8]}{'0' * 24}"
    follower.state.assignments[twin.id] = twin
    assert follower.campaign("") is twin
    assert follower.campaign(first.id) is first
    with pytest.raises(CommandEnds, match=f"as {first.id[:12]}, {twin.id[:12]}: give more") as why:
        follower.campaign(first.id[:4])
    assert why.value.code is Exit.USAGE
    with pytest.raises(CommandEnds, match="--assignment for another campaign than the newest"):
        named(twin, "05-other", campaigns=2)


@pytest.mark.parametrize(
    "task",
    [
        pytest.param("be fast", id="plain"),
        pytest.param("END\n'$(touch here)`\u202e\x07\u2028é", id="hostile"),
    ],
)
def test_the_contract_arrives_as_it_was_signed(rig: Path, tmp_path: Path, task: str) -> None:
    found = campaign(rig)
    found.contract = msgspec.structs.replace(found.contract, task=task)
    script = repro(str(rig / "repos"), ["true"], found, found.attempts[1])
    assert all(line.isprintable() for line in script)  # what is shown is what is run
    assert ran(script, tmp_path).returncode == 0
    raw = next(tmp_path.glob("attempt-1-*/contract.json")).read_bytes()
    again = read_contract(raw)
    assert isinstance(again, Contract)
    assert again == found.contract


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes a file somebody else's")
def test_git_would_refuse_the_same_fetch_without_it(rig: Path, tmp_path: Path) -> None:
    """The guard that the script answers is there: else the test above shows nothing."""
    fetch = shlex.join(["git", "ls-remote", str(rig / "repos/kit-tiny.git")])
    assert "dubious ownership" in ran([fetch], tmp_path).stderr


def test_it_names_this_very_program_and_what_it_needs_by_absolute_paths(
    rig: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(rig.parent)
    assert run(["show", "1", "--repro", "--state", rig.name]) == 0
    script = capsys.readouterr().out.splitlines()
    assert script[0] == "#!/bin/sh"
    assert "set -eu" in script
    program, judge, *_ = shlex.split(script[-1])
    assert Path(program).is_file()
    assert judge in {"judge", "-P"}
    places = [word for line in script for word in shlex.split(line, comments=True)]
    repos = str(rig.resolve() / "repos")
    for name in ("kit-tiny.git", "project-p.git"):
        assert places.count(f"{repos}/{name}") == 2  # trusted, and fetched from
