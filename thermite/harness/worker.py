"""The `command` backend: any program in a bounded process group, at work in a lane's folder.

The lane's folder gets the base's files and nothing of its history. When the program has
ended and nothing of it is left, its files are copied out and compared; git never runs there.
Source: agents and control, A3, A6 and A8.
"""

import json
import re
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from msgspec.structs import replace

from thermite.campaign import limits
from thermite.campaign.state import Assignment
from thermite.errors import ContractError
from thermite.harness import candidate, clock
from thermite.harness.candidate import Refused
from thermite.harness.gateway import Entrance, Gateway
from thermite.harness.proposer import AgentStatus, Task, Work, attempt_ref
from thermite.kit.export import tree_entries
from thermite.rig.output_log import open_log
from thermite.rig.refusal_words import unescaped
from thermite.rig.stages import Slot, Stages
from thermite.schema.ids import CommitId
from thermite.schema.stage import CollectLimits, Entry, Limits

WALL_S: Final = 1800.0
"""Default limit of one attempt (agents and control, A6)."""
TREE: Final = CollectLimits(entries=50_000, levels=128, total_bytes=64 << 20, links=True)
"""Limits of a lane's folder (agents and control, A3, collect); a project may hold links."""
LIMITS: Final = Limits(rss_mib=4096, disk_mib=4096, processes=512)
"""What a worker may take up (our figures); its time is the contract's."""
STOPPED: Final = "the campaign was stopped"
"""Why a worker ends before its time."""
MCP_URL: Final = "{mcp_url}"
_PLACEHOLDER: Final = re.compile(r"\{(lane|brief|mcp_url)\}")
DAY_S: Final = 86400
"""Longest limit of one attempt that a contract may ask for, s (our figure)."""


class Command:
    """A worker that is a program of the contract: `options.command` is its argv."""

    def __init__(
        self,
        repo: Path,
        assignment: Assignment,
        lane: int,
        stages: Stages,
        gateway: Gateway | None = None,
    ) -> None:
        options = assignment.contract.agents.workers.options
        self.argv = _argv(options)
        self.wall_s = _wall_s(options)
        self.repo, self.lane, self.stages, self.gateway = repo, lane, stages, gateway
        self._at_work: Slot | None = None
        self._is_stopped = False

    def next_proposal(self, assignment: Assignment) -> str | None:
        """Return "": a command may be asked as long as the budget lasts."""
        del assignment
        return ""

    def work(self, assignment: Assignment, task: Task) -> Work:
        """Run the program on the base's files and commit what it changed."""
        entries = tree_entries(self.repo, CommitId(task.base))
        slot_name = f"worker-{self.lane}"
        with (
            TemporaryDirectory() as scratch,
            self.stages.slot(slot_name) as slot,
            self.stages.copy_for(slot_name) as told,
            self._entrance() as entrance,
            self._log(task) as log,
        ):
            page = Path(scratch) / "brief.md"
            page.write_bytes(task.brief.encode())
            told.add(page, "brief.md")
            slot.place(entries)
            left_s = limits.left(assignment, "wall_s")
            wall_s = self.wall_s if left_s is None else min(self.wall_s, left_s)
            self._at_work, self._is_stopped = slot, False
            try:
                brief = told.path / "brief.md"
                result = slot.run(
                    filled_in(self.argv, slot.folder, brief, entrance),
                    env=self._environment(slot.folder, brief, task.number) | _told_of(entrance),
                    limits=replace(LIMITS, timeout_s=wall_s),
                    join_output=True,
                    readable=[told],
                    door=None if entrance is None else entrance.door,
                    log=log,
                )
            finally:
                self._at_work = None
            if self._is_stopped:
                return Work(None, "killed", STOPPED, result.stdout)
            into = Path(scratch) / "tree"
            into.mkdir()
            collected = slot.collect(["."], into, TREE)
            if collected.problems:
                made: candidate.Candidate | Refused | None = Refused(
                    "; ".join(collected.problems[:20]), []
                )
            else:
                left = _files(into) | _links(collected.links)
                made = self._commit(assignment, task, entries, left)
        status: AgentStatus = "error" if result.exit_code else "ok"
        if result.killed:
            status = "limit"
        stop = result.killed or (f"exit {result.exit_code}" if result.exit_code else None)
        return Work(made, status, stop, result.stdout)

    def stop(self) -> None:
        """End the program that is at work, if one is; what it left is not looked at."""
        slot = self._at_work
        if slot is not None:
            self._is_stopped = True
            slot.stop()

    def _environment(self, folder: Path, page: Path, number: int) -> dict[str, str]:
        return {
            "PATH": self.stages.path_variable,
            "LANG": "C.UTF-8",
            "USER": f"worker-{self.lane}",
            "HOME": str(folder),
            "TMPDIR": str(folder),
            "THERMITE_BRIEF": str(page),
            "THERMITE_ATTEMPT": str(number),
        }

    def _log(self, task: Task) -> AbstractContextManager[int | None]:
        return nullcontext() if task.log is None else open_log(task.log, LIMITS.output_kib)

    def _entrance(self) -> AbstractContextManager[Entrance | None]:
        return nullcontext() if self.gateway is None else self.gateway.attempt(self.lane)

    def _commit(
        self,
        assignment: Assignment,
        task: Task,
        entries: list[Entry],
        after: dict[str, Entry],
    ) -> candidate.Candidate | Refused | None:
        before = {e.path.decode(errors="surrogateescape"): e for e in entries if e.kind != "folder"}
        changed = {path: e for path, e in after.items() if before.get(path) != e}
        gone = sorted(path for path in before if path not in after)
        if not changed and not gone:
            return None
        ref, at_s = attempt_ref(assignment.id, task.number), int(clock.now().timestamp())
        commit = candidate.commit_files(self.repo, task.base, changed, gone, ref=ref, at_s=at_s)
        contract = assignment.contract
        editable, most_mib = contract.project.editable, contract.budget.candidate_mib
        return candidate.inspect(self.repo, task.base, commit, editable, most_mib=most_mib)


def filled_in(argv: list[str], lane: Path, brief: Path, entrance: Entrance | None) -> list[str]:
    """Return a command line with its placeholders filled in, in one pass.

    The token is none of them: command lines are seen by other processes.

    Source: agents and control, A8, backend `command`.
    """
    url = "" if entrance is None else entrance.url
    values = {"lane": str(lane), "brief": str(brief), "mcp_url": url}
    return [_PLACEHOLDER.sub(lambda found: values[found[1]], word) for word in argv]


def _told_of(entrance: Entrance | None) -> dict[str, str]:
    """Return where a worker finds its tools, nothing when it has none."""
    if entrance is None:
        return {}
    return {"THERMITE_MCP_URL": entrance.url, "THERMITE_MCP_TOKEN": entrance.token}


def _files(tree: Path) -> dict[str, Entry]:
    """Return the files that were collected from a lane, but for the agent's own `.git`."""
    found = {}
    for file in sorted(p for p in tree.rglob("*") if p.is_file()):
        path = str(file.relative_to(tree))
        if _is_the_lanes(path):
            raw, data = path.encode(errors="surrogateescape"), file.read_bytes()
            runs = file.stat().st_mode & 0o100
            found[path] = Entry(path=raw, kind="executable" if runs else "file", data=data)
    return found


def _links(told: Mapping[str, str]) -> dict[str, Entry]:
    """Return the links that a lane holds; those of the base are not the agent's change."""
    found = {}
    for escaped, target in told.items():
        raw = unescaped(escaped)
        path = raw.decode(errors="surrogateescape")
        if _is_the_lanes(path):
            found[path] = Entry(path=raw, kind="link", data=unescaped(target))
    return found


def _is_the_lanes(path: str) -> bool:
    return path.split("/", maxsplit=1)[0] != ".git"


def check_options(options: dict[str, Any]) -> None:
    """Refuse options that the program could not be started with.

    Raises:
        ContractError: no argv, or a limit that is none.
    """
    _argv(options)
    _wall_s(options)


def _argv(options: dict[str, Any]) -> list[str]:
    argv = options.get("command")
    given = argv if isinstance(argv, list) else []
    if not given or not given[0] or not all(isinstance(a, str) and "\0" not in a for a in given):
        raise ContractError(
            "agents.workers.options.command is a list of text, the program and its arguments;"
            f" it is {json.dumps(argv)[:200]}"
        )
    return given


def _wall_s(options: dict[str, Any]) -> float:
    limits = options.get("limits", {})
    wall_s = limits.get("wall_s", WALL_S) if isinstance(limits, dict) else WALL_S
    if isinstance(wall_s, bool) or not isinstance(wall_s, int | float) or not 0 < wall_s <= DAY_S:
        raise ContractError(
            f"agents.workers.options.limits.wall_s is {json.dumps(wall_s)[:80]}: give a number of"
            " seconds up to a day"
        )
    return float(wall_s)
