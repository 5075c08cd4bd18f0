"""A rig's harness side on a simulated rig: real ledger, real git, scripted programs.

Each candidate is a `program.json` (see `simulated_rig`). `Home` makes kit, project and
replay folder once; `Life` is one life of the harness on it, which may be cut short at any
append, before or after it is durable, as kill -9 would.
"""

import base64
import json
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from tests.in_memory import memory_folder
from tests.judge.job.simulated_desk import KIT
from tests.simulated_rig import SimulatedRig
from thermite.campaign.state import Assignment
from thermite.command.signing_key import SigningKey
from thermite.errors import LedgerError
from thermite.harness import clock
from thermite.harness.book import Book, Draft
from thermite.harness.campaigns import Campaigns
from thermite.harness.folder import RigFolder
from thermite.harness.judge_job import Bench
from thermite.judge.build.store import BuildStore
from thermite.judge.verdict.coin import commitment, order_seed
from thermite.judge.verdict.params import goal_rules
from thermite.kit.folder import commit_of_folder
from thermite.ledger.append import Ledger
from thermite.schema import event as e
from thermite.schema.contract import Contract, RepoAt
from thermite.schema.kit import Kit
from thermite.schema.strict import Strict

DIGEST = "5" * 64
ASSIGNMENT = DIGEST[:32]
COIN = bytes(range(32))


class KilledError(LedgerError):
    """Stands for kill -9: nothing of this life does anything more."""


@dataclass
class Home:
    """What outlives the harness: folder, key, kit, project, contract.

    more: other files of the offers, by their path below the replay folder. The rig's own folder is
    in memory where there is room, unless `on_disk`: a campaign makes thousands of files.
    """

    folder: Path
    base: Mapping[str, object]
    candidates: Mapping[str, Mapping[str, object]]
    contract: Mapping[str, object] = field(default_factory=dict)
    manifest: Kit = KIT
    key: SigningKey = field(default_factory=SigningKey.generate)
    more: Mapping[str, str] = field(default_factory=dict)
    on_disk: bool = False

    def __post_init__(self) -> None:
        memory = None if self.on_disk else memory_folder(self)
        self.rig = RigFolder((memory or self.folder) / "rig")
        self.rig.make()
        kit = self.folder / "kit"
        (kit / "bench").mkdir(parents=True)
        for name in ("bench/build.sh", "bench/driver.py", "check.py"):
            (kit / name).write_text("# the kit's own\n")
        (kit / "kit.json").write_bytes(msgspec.json.encode(self.manifest))
        self.kit = RepoAt(repo="tiny", commit=commit_of_folder(self.rig.kit_repo("tiny"), kit))
        project, replay = self.folder / "project", self.folder / "replay"
        project.mkdir()
        (project / "program.json").write_text(json.dumps(self.base, sort_keys=True))
        for name, said in self.candidates.items():
            files = replay / name / "files"
            files.mkdir(parents=True)
            (files / "program.json").write_text(json.dumps(said, sort_keys=True))
        for name, text in self.more.items():
            (replay / name).write_text(text)
        repo = self.rig.project_repo("p")
        self.project = RepoAt(repo="p", commit=commit_of_folder(repo, project))
        self.replay = f"{commit_of_folder(repo, replay)}:"

    def raw_contract(self) -> bytes:
        workers = {"backend": "replay", "options": {"from": self.replay}}
        whole: dict[str, Any] = {
            "schema_version": 1,
            "name": "walk",
            "campaign": "hill_climb",
            "task": "be fast",
            "project": {
                "repo": "p",
                "commit": self.project.commit,
                "kit": msgspec.to_builtins(self.kit),
            },
            "cells": ["small"],
            "held_out_cells": ["held"],
            "objective": {"primary": {"metric": "speed"}},
            "agents": {"workers": workers},
            "isolation": "any",
            **self.contract,
        }
        if whole["campaign"] == "research":
            whole["project"] = {"repo": "p", "commit": self.project.commit}
        return msgspec.json.encode(whole)

    def creation(self) -> list[Strict]:
        seed = order_seed(COIN, bytes.fromhex(DIGEST))
        raw = self.raw_contract()
        wanted = msgspec.json.decode(raw, type=Contract)
        created = e.AssignmentCreated(
            contract=msgspec.Raw(raw),
            contract_sha256="c" * 64,
            kit=wanted.project.kit,
            project=self.project,
            order_commitment=commitment(seed).hex(),
            goals=goal_rules(wanted, self.manifest) if wanted.campaign == "goal" else None,
        )
        return [created, e.McpServers(servers=list(self.manifest.mcp_servers))]


class CutBook(Book):
    """A book whose process dies at its n-th append, before or after the commit.

    appending: called with what is about to; committed: with what has just become durable.
    """

    appends = 0
    appending: Callable[[Sequence[Draft]], None] | None = None
    committed: Callable[[Sequence[Draft]], None] | None = None
    die_at: int | None = None
    after_commit = False

    def append(self, *drafts: Draft) -> list[int]:
        with self.lock:
            self.appends += 1
            dies = self.appends == self.die_at
            if dies and not self.after_commit:
                self._closed = True
                raise KilledError("killed before the commit")
            if self.appending is not None:
                self.appending(drafts)
            seqs = super().append(*drafts)
            if self.committed is not None:
                self.committed(drafts)
            if dies:
                self._closed = True
                raise KilledError("killed after the commit")
            return seqs


class Life:
    """One life of the harness; `run` returns whether the campaign came to its end."""

    def __init__(self, home: Home, *, seed: int = 1) -> None:
        self.home = home
        rig, path = home.rig, home.rig.ledger
        if not path.exists():
            Ledger.create(path, _opening(home.key), home.key, now=clock.stamp).close()
        self.ledger = Ledger.open(path, home.key, now=clock.stamp)
        self.book = CutBook(self.ledger, path)
        if ASSIGNMENT not in self.book.state.assignments:
            drafts = [Draft(p, ASSIGNMENT, command=DIGEST) for p in home.creation()]
            self.book.append(*drafts)
            self.book.appends = 0
        stages = rig.state / "simulated"
        stages.mkdir(exist_ok=True)
        self.stages = SimulatedRig(stages, seed=seed)
        self.bench = Bench(
            self.book, rig, self.stages, BuildStore(rig.store), COIN, threading.Lock(), "cc 12"
        )

    def run(self, *, die_at: int | None = None, after_commit: bool = False) -> bool:
        self.book.die_at, self.book.after_commit = die_at, after_commit
        over = threading.Event()
        ended: list[str] = []
        faults: list[BaseException] = []

        def fatal(error: BaseException) -> None:
            faults.append(error)
            over.set()

        def end(assignment: str) -> None:
            ended.append(assignment)
            over.set()

        campaigns = Campaigns(self.bench, end, fatal)
        campaigns.resume()
        assert over.wait(120)
        campaigns.stop()
        self.ledger.close()
        bad = [f for f in faults if not isinstance(f, LedgerError)]
        if bad:
            raise bad[0]
        return bool(ended)

    @property
    def assignment(self) -> Assignment:
        return self.book.state.assignments[ASSIGNMENT]


def _opening(key: SigningKey) -> e.Event:
    data = e.LedgerOpened(
        ledger="1" * 32,
        rig=key.public.id,
        rig_key=base64.b64encode(key.public.raw).decode(),
        versions={},
        target="cpu",
        image=None,
        machine={},
    )
    return e.ENVELOPES["ledger_opened"](
        id=clock.event_id(),
        assignment=None,
        lane=None,
        actor="harness",
        at=clock.stamp(),
        boot=clock.boot_id(),
        mono_ns=clock.mono_ns(),
        cause=None,
        command=None,
        data=data,
    )
