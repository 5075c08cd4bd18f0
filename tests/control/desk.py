"""A rig's folder, a project, a kit and a contract, all real, and small."""

import base64
import json
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from thermite.command.envelope import digest, read_envelope
from thermite.command.keyring import Keyring, SigningKey
from thermite.command.note import Checkpoint, sign_note
from thermite.command.receipt import receipt_id, seal_receipt, seal_rig_card
from thermite.command.verify import Command, open_command
from thermite.ledger.chain import leaf
from thermite.ledger.merkle import Tree
from thermite.schema.command import Inclusion, Outcome, Receipt, ReceiptCommand, RigCard, TrustedKey

LEDGER = "b2" * 16
KIT: dict[str, Any] = {
    "schema_version": 1,
    "name": "tiny-cpu",
    "target": "cpu",
    "build": {"command": ["sh", ".kit/build.sh"], "copy": ["build.sh"], "outputs": ["out/bench"]},
    "cells": {"small": {"n": 8}, "held": {"n": 9}},
    "run": {"command": ["{build:out/bench}", "{params}", "{out}"], "timeout_s": 3},
    "metrics": {"seconds": {"unit": "s", "from": "time"}},
    "check": {"command": ["sh", "{kit:check.sh}"], "timeout_s": 2},
}
CONTRACT: dict[str, Any] = {
    "schema_version": 1,
    "name": "faster",
    "campaign": "hill_climb",
    "task": "make it faster",
    "project": {"repo": "matmul", "commit": "HEAD"},
    "cells": ["small"],
    "held_out_cells": ["held"],
    "objective": {"primary": {"metric": "seconds", "direction": "min"}},
    "agents": {"workers": {"backend": "command", "options": {"argv": ["true"]}}},
    "budget": {"attempts": 3},
    "isolation": "any",
}
WHO = {
    "GIT_AUTHOR_NAME": "a",
    "GIT_AUTHOR_EMAIL": "a@example.org",
    "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@example.org",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    "PATH": os.environ["PATH"],
}


def run_git(repo: Path, *args: str, **env: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(repo), *args], env=WHO | env, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def make_repo(path: Path, files: Mapping[str, str], *args: str) -> str:
    """Make a repository with one commit of these files; return its id."""
    write(path, files)
    run_git(path, "init", "-q", "-b", "main", *args)
    run_git(path, "add", "-A")
    run_git(path, "commit", "-q", "-m", "first")
    return run_git(path, "rev-parse", "HEAD")


def write(folder: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def kit_files(**changed: object) -> dict[str, str]:
    manifest = json.dumps(KIT | changed, indent=2)
    return {"kit.json": manifest, "build.sh": "mkdir out\n", "check.sh": "echo '{}'\n"}


@dataclass(frozen=True)
class Rig:
    """A rig's folders as a rig lays them out, and its key; no rig runs."""

    folder: Path
    key: SigningKey

    @property
    def inbox(self) -> Path:
        return self.folder / "inbox"

    @property
    def outbox(self) -> Path:
        return self.folder / "outbox"

    def dropped(self, suffix: str) -> list[Path]:
        return sorted(path for path in (self.inbox / "new").iterdir() if path.name.endswith(suffix))

    def opened(self, key: SigningKey) -> Command:
        """Return the one order in the inbox, verified as a rig does."""
        (order,) = self.dropped(".cmd.json")
        trusted = TrustedKey(
            id=key.public.id, public=key.public.base64, label="", roles=["root", "command"]
        )
        return open_command(
            order.read_bytes(),
            Keyring([trusted]),
            rig=self.key.public.id,
            ledger=LEDGER,
            now=datetime.now(UTC),
        )

    def write_card(self, **changed: object) -> None:
        fields: dict[str, Any] = {
            "v": 1,
            "name": "bench",
            "rig": self.key.public.id,
            "key": self.key.public.base64,
            "ledger": LEDGER,
            "target": "cpu",
            "isolation": {"level": "none"},
            "grade": "quiet",
            "sees": 0.015,
            "checkpoint": self.note(3),
            "at": "2026-03-01T12:00:00Z",
        }
        card = msgspec.structs.replace(RigCard(**fields), **changed)
        raw = seal_rig_card(card, self.key)
        (self.outbox / "rig.json").write_bytes(raw)

    def note(self, size: int, root: bytes | None = None) -> str:
        return sign_note(
            Checkpoint(
                rig=self.key.public.id,
                ledger=LEDGER,
                size=size,
                root=tree().root(size) if root is None else root,
                head=b"h" * 32,
                time="2026-03-01T12:00:00Z",
            ),
            self.key,
        )

    def answer(self, order: bytes, outcome: Outcome, **changed: object) -> Path:
        """Write the receipt of an order as a rig does, whole and under its name."""
        payload = read_envelope(order).payload
        sha256 = digest(payload)
        fields: dict[str, Any] = {
            "v": 1,
            "rig": self.key.public.id,
            "ledger": LEDGER,
            "receipt_id": receipt_id(sha256, outcome),
            "command": ReceiptCommand(sha256=sha256, id=json.loads(payload)["id"]),
            "outcome": outcome,
            "code": None,
            "message": None,
            "warnings": [],
            "event_seq": 7,
            "assignment": sha256[:32],
            "checkpoint": self.note(9),
            "inclusion": None,
            "consistency": goes_on(json.loads(payload).get("after"), 9),
            "at": "2026-03-01T12:00:01Z",
        }
        path = self.outbox / f"{sha256[:12]}.{outcome}.receipt.json"
        half = path.with_name(f".{path.name}")
        receipt = msgspec.structs.replace(Receipt(**fields), **changed)
        half.write_bytes(seal_receipt(receipt, self.key))
        half.rename(path)
        return path


def tree() -> Tree:
    """The tree over what a desk's ledger would hold."""
    grown = Tree()
    for number in range(32):
        grown.append(leaf(b"event %d" % number))
    return grown


def goes_on(after: dict[str, Any] | None, to: int) -> Inclusion | None:
    """The proof that a checkpoint of `to` events goes on from the one that an order names."""
    if after is None or after["size"] > to:
        return None
    hashes = tree().consistency(after["size"], to)
    return Inclusion(
        from_=after["size"], to=to, hashes=[base64.b64encode(one).decode() for one in hashes]
    )


def make_rig(folder: Path) -> Rig:
    for name in ("inbox/tmp", "inbox/new", "outbox"):
        (folder / name).mkdir(parents=True)
    rig = Rig(folder, SigningKey.generate())
    rig.write_card()
    return rig
