"""`thermite kit test`: every known candidate of a kit against what its author expects.

Each candidate is judged in a local job against the champion that its `expect.toml` names.
A case whose needs this rig does not meet is judged by the first `instead` that it does meet,
or skipped, naming what is missing. Source: kit requirements, 20.
"""

import re
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import Final

from thermite.agent.propose.replay import Proposal, proposals
from thermite.errors import KitError, NotFoundError
from thermite.harness import candidate, clock
from thermite.harness.local_job import PROJECT, LocalJudge, LocalVerdict, local_contract
from thermite.judge.verdict.words import percent
from thermite.kit.export import tree_entries
from thermite.kit.folder import commit_of_folder
from thermite.kit.known import (
    BASE,
    CANDIDATES,
    case_here,
    filled_in,
    read_known,
)
from thermite.kit.manifest import load_kit
from thermite.schema.contract import Contract, Judging
from thermite.schema.event import IsolationProbe, RigSelftest
from thermite.schema.expectation import Expectation, Instead
from thermite.schema.ids import CommitId
from thermite.schema.judging import RUN_S_OF, STARTUP_SHARE_OF
from thermite.schema.protection import applied
from thermite.schema.strict import Strict

ALONE: Final = "none"
"""`against`: judged without a champion."""
UNMEASURED: Final = frozenset({"invalid", "crash_candidate"})
"""Verdicts for which no time is compared with another."""


class Tried(Strict):
    """One known candidate: what came of it beside what was expected; gain is a fraction."""

    name: str
    ok: bool
    verdict: str | None
    expected: list[str]
    reason: str
    gain: float | None
    seconds: float
    skipped: str | None


class KnownCandidates:
    """A kit's known candidates, read whole; every problem is the kit author's."""

    def __init__(self, kit_folder: Path) -> None:
        self.folder = kit_folder / CANDIDATES
        self.kit = load_kit(kit_folder)
        read = read_known(self.kit, kit_folder)
        if not self.folder.is_dir():
            raise KitError(f"{self.folder} is missing: the kit has no known candidates")
        if read.problems or read.contract is None:
            raise KitError("; ".join(read.problems))
        self.names, self.expectations, self.known = read.names, read.expectations, read.contract

    def chosen(self, only: Collection[str]) -> list[str]:
        """Return the names to try; only: those of them, or none for all.

        Raises:
            NotFoundError: there is no such candidate.
        """
        for name in only:
            if name not in self.names:
                there = ", ".join(self.names)
                raise NotFoundError(f"the kit has no candidate {name}: it has {there}")
        return [name for name in self.names if not only or name in only]

    def contract(self, judge: LocalJudge) -> Contract:
        """Return what the candidates are judged on."""
        return local_contract(self.kit, judge.kit, filled_in(self.kit, self.known))


class Trial:
    """The known candidates on one rig; warnings: what the selftest says of kit and rig."""

    def __init__(self, known: KnownCandidates, judge: LocalJudge) -> None:
        self.known, self.judge = known, judge
        probe = judge.bench.book.state.isolation
        if probe is None:
            raise RuntimeError("a rig probes its isolation at its start")
        self.probe: IsolationProbe = probe
        self.contract = known.contract(judge)
        self.warnings: list[str] = []
        store = judge.bench.folder.project_repo("known")
        self._offers = _offers(known.folder, store, set(known.names))
        self._commits: dict[str, str] = {BASE: judge.commit(known.folder / BASE)}

    def run(self, names: Iterable[str], tell: Callable[[str], None]) -> list[Tried]:
        """Try candidates in turn; tell: hears what is about to happen."""
        wanted = list(names)
        if len(wanted) == len(self.known.names) or any(map(self._is_measured, wanted)):
            tell("measuring base against itself, to see what rig and kit are good for")
            self._selftest()
        tried = []
        for number, name in enumerate(wanted, 1):
            tell(f"judging {name}, {number} of {len(wanted)}")
            tried.append(self._try(name))
        return tried

    def _selftest(self) -> None:
        self.judge.selftest(self._commits[BASE], self.contract)
        seen = self.judge.bench.book.state.selftest
        self.warnings = [] if seen is None else measuring_warnings(seen, self.contract.judging)

    def _is_measured(self, name: str) -> bool:
        """Return whether what is expected of a candidate takes more than one run of it."""
        expectation = self.known.expectations[name]
        instead = [verdict for case in expectation.instead for verdict in case.verdict]
        return not UNMEASURED.issuperset([*expectation.verdict, *instead])

    def _try(self, name: str) -> Tried:
        expectation = self.known.expectations[name]
        here = applied(self.probe, self.known.kit.target)
        case = case_here(expectation, here)
        if case is None:
            missing = sorted(set(expectation.needs) - here)
            return _skipped(name, expectation, f"this rig lacks {', '.join(missing)}")
        commit = self._commit(name)
        if commit is None:
            return _skipped(name, case, "change.patch does not apply", ok=False)
        alone = expectation.against == ALONE
        champion = None if alone else self._commit(expectation.against)
        return _compared(name, case, self.judge.judge(commit, champion, self.contract, name))

    def _commit(self, name: str) -> str | None:
        """Return the commit of a candidate's tree, or None when its patch does not apply."""
        if name in self._commits:
            return self._commits[name]
        against = self.known.expectations[name].against
        base = self._commit(BASE if against == ALONE else against)
        if base is None:
            return None
        repo = self.judge.bench.folder.project_repo(PROJECT)
        offer, ref = self._offers[name], f"refs/known/{name}"
        at_s = int(clock.now().timestamp())
        if offer.patch is not None:
            made = candidate.commit_patch(repo, base, offer.patch, ref=ref, at_s=at_s)
        else:
            files, gone = offer.files, offer.deletes
            made = candidate.commit_files(repo, base, files, gone, ref=ref, at_s=at_s)
        if made is not None:
            self._commits[name] = made
        return made


def measuring_warnings(seen: RigSelftest, judging: Judging | None) -> list[str]:
    """Return what keeps verdicts on this kit and rig from meaning much.

    Args:
        seen: the selftest, with `base` as both arms.

    Source: the design page on judging, 3.5 and 3.7.
    """
    border = (judging or Judging()).startup_share_warn
    sd = seen.figures["robust_sd"]
    found = [
        _short_cell(name.removeprefix(STARTUP_SHARE_OF), share, seen, border)
        for name, share in seen.figures.items()
        if name.startswith(STARTUP_SHARE_OF) and share is not None and share > border
    ]
    if seen.grade == "noisy":
        differs = "can't be told" if sd is None else f"differs from itself by {percent(sd)}"
        found.append(
            f"this rig is noisy: base {differs}; small gains can't be seen, and a verdict may be"
            " noisy_rig: end other work on this machine"
        )
    return found


def _short_cell(cell: str, share: float, seen: RigSelftest, border: float) -> str:
    run_s = seen.figures.get(RUN_S_OF + cell)
    lasts = "" if run_s is None else f", of {1000 * run_s:.1f} ms"
    return (
        f"cell {cell} is too short to time well: startup is {percent(share)} of base's run{lasts},"
        f" and {percent(border)} are borne without a word: make the cell larger"
    )


def _offers(folder: Path, store: Path, names: Collection[str]) -> dict[str, Proposal]:
    """Return the candidates' changes, read as a replay folder is; files beside them are none."""
    commit = commit_of_folder(store, folder)
    entries = [
        one
        for one in tree_entries(store, CommitId(commit))
        if one.path.decode(errors="surrogateescape").partition("/")[0] in names
    ]
    return {p.name: p for p in proposals(entries, "")}


def _skipped(name: str, case: Expectation | Instead, why: str, *, ok: bool = True) -> Tried:
    return Tried(
        name=name,
        ok=ok,
        verdict=None,
        expected=list(case.verdict),
        reason=why,
        gain=None,
        seconds=0.0,
        skipped=why if ok else None,
    )


def _compared(name: str, case: Expectation | Instead, found: LocalVerdict) -> Tried:
    verdict = found.verdict
    reasons = "; ".join(verdict.reasons)
    ok = verdict.verdict in case.verdict
    if case.reason is not None:
        ok = ok and re.search(case.reason, reasons) is not None
    if case.gain is not None and verdict.verdict == "promoted":
        low, high = case.gain
        ok = ok and verdict.gain is not None and low <= verdict.gain <= high
    return Tried(
        name=name,
        ok=ok,
        verdict=verdict.verdict,
        expected=list(case.verdict),
        reason=reasons,
        gain=verdict.gain,
        seconds=round(found.seconds, 2),
        skipped=None,
    )
