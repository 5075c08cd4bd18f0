"""`thermite judge`: one folder or commit, one kit, one verdict.

What is judged is named as `FOLDER` (its files as they are; at the root of a git work tree
without the ignored ones) or `FOLDER@REV`. Source: judging, 3.11.
"""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec

from thermite.errors import InfrastructureError, NotFoundError, UsageError
from thermite.harness.local_job import PROJECT, LocalJudge, LocalVerdict, local_contract
from thermite.kit.bundle import keep_from_bundle, make_bundle
from thermite.kit.folder import commit_of_folder
from thermite.kit.git import git, run_git
from thermite.schema.contract import Contract
from thermite.schema.expectation import KnownContract
from thermite.schema.ids import CommitId
from thermite.schema.kit import Kit, TimeMetric

HELD: Final = "held"
"""The word for a promotion that waits for a person, whom a local job does not have."""


@dataclass(frozen=True)
class Named:
    """A folder as it stands, or a commit of its repository."""

    folder: Path
    rev: str | None

    @classmethod
    def of(cls, text: str, *, beside: "Named | None" = None) -> "Named":
        """Read `FOLDER` or `FOLDER@REV`, or a revision alone in the repository of `beside`.

        Raises:
            NotFoundError: no such folder.
        """
        if Path(text).is_dir():
            return cls(Path(text), None)
        folder, at, rev = text.rpartition("@")
        if at and rev and Path(folder).is_dir():
            return cls(Path(folder), rev)
        if beside is None or text.startswith("-"):
            raise NotFoundError(f"there is no folder {text}")
        return cls(beside.folder, text)

    def committed(self, store: Path) -> CommitId:
        """Bring it into a bare repository, made if need be, and return its commit.

        Raises:
            KitError: the folder holds what can't be committed.
            NotFoundError: there is no such revision.
        """
        if self.rev is None:
            with as_it_stands(self.folder) as folder:
                return commit_of_folder(store, folder)
        commit = _resolved(self.folder, self.rev)
        with tempfile.TemporaryDirectory(prefix="thermite-judge-") as name:
            bundle = Path(name) / "project.bundle"
            make_bundle(self.folder, commit, bundle)
            keep_from_bundle(bundle, store, commit)
        return commit


def _resolved(folder: Path, rev: str) -> CommitId:
    done = run_git(folder, "rev-parse", "--verify", "--end-of-options", f"{rev}^{{commit}}")
    if done.code != 0:
        raise NotFoundError(f"{rev} is neither a folder nor a commit of the repository at {folder}")
    return CommitId(done.stdout.decode("ascii").strip())


@contextmanager
def as_it_stands(folder: Path) -> Iterator[Path]:
    """Yield a folder without a repository: itself, or a copy of what its git would not ignore.

    Raises:
        UsageError: a repository inside it is part of it.
    """
    if not (folder / ".git").exists():
        yield folder
        return
    listing = ["--cached", "--others", "--exclude-standard", "--deduplicate", "-z"]
    work_tree = {"GIT_WORK_TREE": str(folder.absolute())}
    whole = ["--full-name", "--", ":/"]  # git runs in the repository's own folder
    names = git(folder, "ls-files", *listing, *whole, env=work_tree).split(b"\0")
    with tempfile.TemporaryDirectory(prefix="thermite-judge-") as name:
        for path in (raw.decode("utf-8", "surrogateescape") for raw in names if raw):
            _copy(folder / path, Path(name) / path)
        yield Path(name)


def _copy(source: Path, target: Path) -> None:
    if source.is_dir() and not source.is_symlink():
        raise UsageError(f"{source} is a git repository inside the folder: take it out")
    if not source.is_symlink() and not source.is_file():
        return  # removed from the work tree, and not yet from the index
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_symlink():
        target.symlink_to(source.readlink())
    else:
        target.write_bytes(source.read_bytes())
        target.chmod(0o755 if source.stat().st_mode & 0o100 else 0o644)


@dataclass(frozen=True)
class OfContract:
    """What a campaign's contract asks of each candidate, whole."""

    asked: Contract

    def contract(self, kit: Kit, judge: LocalJudge) -> Contract:
        """Return the contract of a local job.

        Raises:
            UsageError: it has no objective.
            KitError: the kit does not fit it.
        """
        if self.asked.objective is None:
            raise UsageError("the contract has no objective, so it asks for no gain: leave it out")
        names = [field.name for field in msgspec.structs.fields(KnownContract)]
        fields = {name: msgspec.to_builtins(getattr(self.asked, name)) for name in names}
        fields["judging"]["max_discard_share"] = self.asked.judging.most_discarded
        return local_contract(kit, judge.kit, fields)


@dataclass(frozen=True)
class Question:
    """What to judge by: cells, none for all; metric None for the kit's only one."""

    cells: Sequence[str] = ()
    metric: str | None = None
    direction: str | None = None
    min_effect: float | None = None

    def contract(self, kit: Kit, judge: LocalJudge) -> Contract:
        """Return the contract of a local job.

        Raises:
            UsageError: the kit has no such cell or metric, or several metrics and none named.
            KitError: the kit can't judge on these.
        """
        for cell in self.cells:
            if cell not in kit.cells:
                raise UsageError(f"the kit has no cell {cell}: it has {', '.join(kit.cells)}")
        objective: dict[str, Any] = {"primary": self._primary(kit)}
        if self.min_effect is not None:
            objective["min_effect"] = self.min_effect
        cells = list(dict.fromkeys(self.cells)) or list(kit.cells)
        return local_contract(kit, judge.kit, {"cells": cells, "objective": objective})

    def _primary(self, kit: Kit) -> dict[str, str]:
        there = ", ".join(kit.metrics)
        if self.metric is None and len(kit.metrics) != 1:
            raise UsageError(f"the kit has the metrics {there or 'none'}: name one with --metric")
        name = self.metric or next(iter(kit.metrics))
        if name not in kit.metrics:
            raise UsageError(f"the kit has no metric {name}: it has {there}")
        usual = "min" if isinstance(kit.metrics[name], TimeMetric) else "max"
        return {"metric": name, "direction": self.direction or usual}


def judge_here(
    judge: LocalJudge,
    kit: Kit,
    project: Named,
    champion: Named | None,
    question: Question | OfContract,
) -> LocalVerdict:
    """Judge a project against a champion, or alone.

    Raises:
        KitError: a folder holds what can't be committed.
        UsageError, NotFoundError: what was named is not there.
        InfrastructureError: the kit or the rig can't be used at all.
    """
    store = judge.bench.folder.project_repo(PROJECT)
    contract = question.contract(kit, judge)
    candidate = project.committed(store)
    against = None if champion is None else champion.committed(store)
    if against is not None:
        # A champion that can't be measured is no error of the command: the verdict says so.
        with suppress(InfrastructureError):
            judge.selftest(against, contract)
    return judge.judge(candidate, against, contract)


def told(found: LocalVerdict, *, alone: bool) -> dict[str, Any]:
    """Return what a parser is told of a verdict; fractions, and medians in the kit's units."""
    verdict = found.verdict
    held = []
    if found.hold is not None:
        waits = f"held for {found.hold}, nobody is here to release it"
        held = [waits, *found.attempt.hold_reasons]
    return {
        "verdict": HELD if held else verdict.verdict,
        "reasons": held or list(verdict.reasons),
        "marks": list(verdict.marks),
        "champion": None if alone else found.attempt.started.base,
        "gain": verdict.gain,
        "interval": None if verdict.interval is None else list(verdict.interval),
        "cells": verdict.cells,
        "blocks": found.blocks,
    }
