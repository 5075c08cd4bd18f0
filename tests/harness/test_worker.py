"""The `command` backend on a real rig: a program at work in a lane's folder."""

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from tests.requirement import shows
from tests.simulated_campaign import ASSIGNMENT, Home, Life
from thermite.agent.brief import brief
from thermite.cli.root import run
from thermite.errors import ContractError
from thermite.harness.book import Draft
from thermite.harness.candidate import Candidate, Refused, commit_files
from thermite.harness.folder import RigFolder
from thermite.harness.gateway import Entrance
from thermite.harness.proposer import Task, Work, attempt_ref
from thermite.harness.worker import Command, filled_in
from thermite.kit.git import git
from thermite.ledger.replay import recorded
from thermite.rig.stages import Door, Stages
from thermite.rig.start import spawner
from thermite.schema.event import AgentFinished, AttemptStarted, CommandAccepted, Steered
from thermite.schema.stage import Entry


@pytest.fixture(scope="module")
def stages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stages]:
    with spawner(tmp_path_factory.mktemp("rig"), isolation="none") as rig:
        yield rig


def work(
    tmp_path: Path,
    stages: Stages,
    script: str,
    links: Mapping[str, Entry] | None = None,
    before: Callable[[Home], None] = lambda _: None,
    **options: object,
) -> tuple[Work, Home]:
    home = Home(tmp_path, {"ms": 40}, {"a": {"ms": 30}}, on_disk=True)
    before(home)
    command = {"command": ["/bin/sh", "-c", script], **options}
    home.contract = {
        "agents": {"workers": {"backend": "command", "options": command}},
        "task": "make it fast",
        "project": {
            "repo": "p",
            "commit": home.project.commit,
            "kit": msgspec.to_builtins(home.kit),
            "editable": ["*.json", "*.txt"],
        },
    }
    life = Life(home)
    life.ledger.close()
    repo = home.rig.project_repo("p")
    assignment = life.book.state.assignments[ASSIGNMENT]
    backend = Command(repo, assignment, 0, stages)
    base = home.project.commit
    if links:
        base = commit_files(repo, base, links, [], ref="refs/linked", at_s=0)
    return backend.work(assignment, Task(1, base, "", brief(assignment, 0))), home


def test_what_a_program_changes_becomes_a_candidate(tmp_path: Path, stages: Stages) -> None:
    script = "echo '{\"ms\": 5}' > program.json; echo hi > new.txt; echo done"
    done, home = work(tmp_path, stages, script)
    assert isinstance(done.made, Candidate)
    assert done.made.paths == ["new.txt", "program.json"]
    assert done.status == "ok"
    assert done.transcript == b"done\n"
    shown = git(home.rig.project_repo("p"), "show", f"{done.made.commit}:program.json")
    assert shown == b'{"ms": 5}\n'


@shows("U12")
def test_a_program_that_warns_and_succeeds_has_succeeded(tmp_path: Path, stages: Stages) -> None:
    script = "echo 'WARNING: fatal error, Traceback' >&2; echo '{\"ms\": 5}' > program.json"
    done, _ = work(tmp_path, stages, script)
    assert (done.status, done.stop) == ("ok", None)
    assert isinstance(done.made, Candidate)
    assert b"WARNING: fatal error" in (done.transcript or b"")


def test_a_program_reads_its_brief_and_finds_no_history(tmp_path: Path, stages: Stages) -> None:
    script = 'cat "$THERMITE_BRIEF"; echo; ls -A; echo "$USER $THERMITE_ATTEMPT"'
    done, _ = work(tmp_path, stages, script)
    assert done.made is None
    assert done.transcript is not None
    said = done.transcript.decode()
    assert "make it fast" in said
    assert said.endswith("program.json\nworker-0 1\n")


CANARY = "canary-of-a-faster-commit"


def test_placeholders_of_a_command_line_are_filled_in_once() -> None:
    entrance = Entrance("http://127.0.0.1:8422/mcp", "canary", Door(port=8422))
    argv = ["agent", "--at={lane}/x", "{brief}{brief}", "{mcp_url}", "{mcp_token} {out} {}"]
    lane, page = Path("/lane{brief}"), Path("/told/brief.md")
    assert filled_in(argv, lane, page, entrance) == [
        "agent",
        "--at=/lane{brief}/x",
        "/told/brief.md/told/brief.md",
        "http://127.0.0.1:8422/mcp",
        "{mcp_token} {out} {}",
    ]
    assert filled_in(["{mcp_url}"], lane, page, None) == [""]


def test_a_program_is_told_its_lane_and_brief_in_its_arguments(
    tmp_path: Path, stages: Stages
) -> None:
    script = 'test "{lane}" = "$PWD" && cat {brief} && test {brief} = $THERMITE_BRIEF'
    done, _ = work(tmp_path, stages, script)
    assert done.status == "ok"
    assert b"make it fast" in (done.transcript or b"")


def with_a_future(home: Home) -> None:
    """A project whose repository knows faster programs, by every kind of reference and by none."""
    repo, base = home.rig.project_repo("p"), home.project.commit
    told = json.dumps({"ms": 1, "said": CANARY}).encode()
    faster = {"program.json": Entry(path=b"program.json", kind="file", data=told)}
    kept = ["refs/heads/later", "refs/tags/v2", "refs/notes/commits", "refs/stash"]
    kept.append(attempt_ref(ASSIGNMENT, 7))
    for number, ref in enumerate([*kept, "refs/heads/gone"]):
        commit_files(repo, base, faster, [], ref=ref, at_s=number)
    git(repo, "update-ref", "-d", "refs/heads/gone")
    assert CANARY.encode() in git(repo, "show", "v2:program.json")


@shows("R2")
def test_a_worker_finds_no_commit_but_the_files_of_its_base(tmp_path: Path, stages: Stages) -> None:
    if not any(one.startswith("landlock") for one in stages.isolation.features):
        pytest.skip("this kernel has no Landlock, so level none keeps nothing apart")
    folder = RigFolder(tmp_path / "rig")
    repos = [folder.project_repo("p"), folder.kit_repo("tiny")]
    looks = [
        f"git -c safe.directory='*' -C {repo} {asked} 2>/dev/null"
        for repo in repos
        for asked in ("log --all --reflog -p", "cat-file --batch-all-objects --batch", "fsck")
    ]
    looks += [f"find {repo} -type f -exec cat {{}} + 2>/dev/null" for repo in repos]
    script = "; ".join(["ls -A", "git log --all 2>/dev/null || echo no history", *looks, "true"])
    done, _ = work(tmp_path, stages, script, before=with_a_future)
    assert done.transcript == b"program.json\nno history\n"


@shows("G6")
def test_a_repository_that_the_agent_made_is_left_out(tmp_path: Path, stages: Stages) -> None:
    script = "mkdir -p .git/hooks; echo x > .git/config; echo y > new.txt"
    done, _ = work(tmp_path, stages, script)
    assert isinstance(done.made, Candidate)
    assert done.made.paths == ["new.txt"]


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        pytest.param("echo x > code.c", "changed outside project.editable", id="not editable"),
        pytest.param("ln -s /etc/passwd a.txt", "symbolic link", id="a link"),
        pytest.param("mkfifo a.txt", "pipe", id="a pipe"),
        pytest.param(
            "mkdir -p sub/.git; echo x > sub/.git/a.txt; echo y > sub/b.txt",
            ".git or .kit",
            id="G6-a nested clone",
        ),
        pytest.param("mkdir .kit; echo x > .kit/a.txt", ".git or .kit", id="the kit's place"),
    ],
)
def test_what_may_not_be_a_candidate_is_refused_in_words(
    tmp_path: Path, stages: Stages, script: str, reason: str
) -> None:
    done, _ = work(tmp_path, stages, script)
    assert isinstance(done.made, Refused)
    assert reason in done.made.reason


LINKS = {
    "kept.txt": Entry(path=b"kept.txt", kind="link", data=b"program.json"),
    "odd \u00e9.txt": Entry(path="odd \u00e9.txt".encode(), kind="link", data=b"..\xff"),
}


@pytest.mark.parametrize(
    ("script", "paths", "reason"),
    [
        pytest.param("echo hi > new.txt", ["new.txt"], None, id="left alone"),
        pytest.param("cat kept.txt > new.txt", ["new.txt"], None, id="read through"),
        pytest.param("rm kept.txt; echo hi > a.txt", ["a.txt", "kept.txt"], None, id="removed"),
        pytest.param("rm kept.txt; echo x > kept.txt", ["kept.txt"], None, id="made a file"),
        pytest.param(
            "ln -sf /etc/passwd kept.txt", ["kept.txt"], "symbolic link", id="turned elsewhere"
        ),
    ],
)
def test_the_projects_own_links_are_no_change(
    tmp_path: Path, stages: Stages, script: str, paths: list[str], reason: str | None
) -> None:
    done, _ = work(tmp_path, stages, script, links=LINKS)
    if reason is None:
        assert isinstance(done.made, Candidate), done.made
    else:
        assert isinstance(done.made, Refused)
        assert reason in done.made.reason
    assert done.made.paths == paths


def test_a_limit_ends_a_program_and_its_work_counts(tmp_path: Path, stages: Stages) -> None:
    script = "echo early > new.txt; (sleep 60 &) ; sleep 60"
    done, _ = work(tmp_path, stages, script, limits={"wall_s": 1})
    assert done.status == "limit"
    assert done.stop == "timeout"
    assert isinstance(done.made, Candidate)


def test_a_program_that_fails_says_how(tmp_path: Path, stages: Stages) -> None:
    done, _ = work(tmp_path, stages, "exit 3")
    assert (done.status, done.stop, done.made) == ("error", "exit 3", None)


@pytest.mark.parametrize("argv", [None, [], "ls", [1]])
def test_a_command_that_is_no_list_of_text_is_refused(
    tmp_path: Path, stages: Stages, argv: object
) -> None:
    with pytest.raises(ContractError, match="list of text"):
        work(tmp_path, stages, "", command=argv)


def test_the_environment_holds_nothing_of_the_rigs(tmp_path: Path, stages: Stages) -> None:
    done, _ = work(tmp_path, stages, "env | cut -d= -f1 | sort | tr '\\n' ' '")
    assert done.transcript is not None
    names = set(done.transcript.decode().split()) - {"PWD", "OLDPWD", "SHLVL", "_"}
    assert names == {
        "PATH",
        "LANG",
        "USER",
        "HOME",
        "TMPDIR",
        "THERMITE_BRIEF",
        "THERMITE_ATTEMPT",
    }


def stopped_campaign(tmp_path: Path, stages: Stages, script: str, **budget: object) -> Life:
    """Run a research campaign whose worker is a script; stop it now when its attempt starts."""
    home = Home(tmp_path, {"ms": 40}, {"a": {"ms": 30}}, on_disk=True)
    options = {"command": ["/bin/sh", "-c", script]}
    home.contract = {
        "campaign": "research",
        "cells": [],
        "held_out_cells": [],
        "objective": None,
        "budget": {"attempts": 2, **budget},
        "agents": {"workers": {"backend": "command", "options": options}},
    }
    life = Life(home)
    life.bench = replace(life.bench, stages=stages)
    return life


def test_a_stop_now_ends_a_running_worker(tmp_path: Path, stages: Stages) -> None:
    life = stopped_campaign(tmp_path, stages, "echo begun; exec sleep 300")
    begun = time.monotonic()

    def stop(drafts: Sequence[Draft]) -> None:
        if any(isinstance(draft.data, AttemptStarted) for draft in drafts):
            accepted = CommandAccepted(
                sha256="e" * 64,
                id="f" * 32,
                type="stop_campaign",
                issuer="i" * 32,
                keys=[],
                body={"assignment": ASSIGNMENT, "now": True},
            )
            life.book.append(Draft(accepted, assignment=ASSIGNMENT))

    life.book.committed = stop
    assert life.run()
    assert time.monotonic() - begun < 60
    (attempt,) = life.assignment.attempts.values()
    assert (attempt.result, life.assignment.end_reason) == ("killed", "stopped")
    told = [row.event.data for row in recorded(life.home.rig.ledger)]
    (finished,) = [data for data in told if isinstance(data, AgentFinished)]
    assert (finished.status, finished.stop_reason) == ("killed", "the campaign was stopped")


def test_a_worker_gets_no_more_time_than_the_campaign_has_left(
    tmp_path: Path, stages: Stages
) -> None:
    life = stopped_campaign(tmp_path, stages, "exec sleep 300", wall_s=1)
    assert life.run()
    assert life.assignment.end_reason == "budget: wall_s"
    assert [a.result for a in life.assignment.attempts.values()] == ["limit"]


def test_a_worker_gets_no_time_when_another_lane_has_spent_the_rest(
    tmp_path: Path, stages: Stages
) -> None:
    life = stopped_campaign(tmp_path, stages, "exec sleep 300", wall_s=9)
    life.ledger.close()
    assignment = life.book.state.assignments[ASSIGNMENT]
    assignment.spent["wall_s"] = 10.0
    backend = Command(life.home.rig.project_repo("p"), assignment, 0, stages)
    done = backend.work(assignment, Task(1, life.home.project.commit, "", ""))
    assert (done.made, done.status, done.stop) == (None, "limit", "timeout")


def test_a_worker_reads_the_brief_whose_digest_is_recorded(tmp_path: Path, stages: Stages) -> None:
    """A note that came between an attempt's start and its worker's was in one and not the other."""
    life = stopped_campaign(tmp_path, stages, 'cat "$THERMITE_BRIEF"', attempts=1)

    def steer(drafts: Sequence[Draft]) -> None:
        if any(isinstance(draft.data, AttemptStarted) for draft in drafts):
            note = Steered(lane=None, text="try tiles")
            life.book.append(Draft(note, assignment=ASSIGNMENT))

    life.book.committed = steer
    assert life.run()
    assert life.assignment.steers == [(None, "try tiles")]
    (attempt,) = life.assignment.attempts.values()
    told = [row.event.data for row in recorded(life.home.rig.ledger)]
    (finished,) = [data for data in told if isinstance(data, AgentFinished)]
    assert finished.transcript == attempt.started.brief_sha256


@pytest.mark.parametrize(
    "after_commit",
    [
        pytest.param(True, id="L10-when its worker had ended"),
        pytest.param(False, id="L10-before it was known that it had"),
    ],
)
def test_a_kill_in_an_attempt_costs_no_transcript(
    tmp_path: Path, stages: Stages, capsys: pytest.CaptureFixture[str], *, after_commit: bool
) -> None:
    life = stopped_campaign(tmp_path, stages, 'echo "attempt $THERMITE_ATTEMPT"', attempts=6)
    # The lane's, then two of each attempt: its start, and what its worker came to.
    assert not life.run(die_at=1 + 2 * 5, after_commit=after_commit)
    again = Life(life.home)
    again.bench = replace(again.bench, stages=stages)
    assert again.run()
    said, partial = {}, set()
    for number in range(1, 7):
        argv = ["show", str(number), "--ledger", str(life.home.rig.ledger), "--json"]
        assert run(argv) == 0
        worker = json.loads(capsys.readouterr().out)["worker"]
        said[number] = (life.home.rig.blobs / worker["transcript"]).read_bytes()
        partial |= {number} if worker["partial"] else set()
    assert said == {n: b"attempt %d\n" % n for n in range(1, 7)}
    assert partial == (set() if after_commit else {5})
    assert list(life.home.rig.blobs.glob(".said-*")) == []
