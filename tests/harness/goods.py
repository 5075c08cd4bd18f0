"""Real repositories and bundles for an assignment: a kit, a project, a contract that fits."""

import hashlib
import json
import os
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.orders import Orders
from thermite.kit.bundle import make_bundle
from thermite.schema.ids import CommitId

MANIFEST: dict[str, Any] = {
    "schema_version": 1,
    "name": "tiny",
    "target": "cpu",
    "build": {"command": ["true"], "outputs": ["out"]},
    "cells": {"small": {"n": 8, "work": 100}},
    "run": {"command": ["{build:out}"]},
    "metrics": {"flops": {"unit": "FLOP/s", "work": "work"}},
    "check": {"command": ["true"]},
}
ENV = {
    "PATH": os.environ["PATH"],
    "HOME": "/nonexistent",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_AUTHOR_NAME": "a",
    "GIT_AUTHOR_EMAIL": "a@example.org",
    "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@example.org",
}


def git(repo: Path, *args: str, stdin: bytes = b"") -> str:
    done = subprocess.run(
        ["git", "-C", str(repo), *args], env=ENV, input=stdin, capture_output=True, check=True
    )
    return done.stdout.decode().strip()


def commit(repo: Path, files: dict[str, str]) -> str:
    """Commit these files in a repository, made when it is missing, and return the commit."""
    if not (repo / ".git").exists():
        repo.mkdir(parents=True, exist_ok=True)
        git(repo, "init", "-q", "-b", "main")
    for name, text in files.items():
        (repo / name).parent.mkdir(parents=True, exist_ok=True)
        (repo / name).write_text(text)
    git(repo, "add", "-A")
    git(repo, "commit", "-q", "-m", "c")
    return git(repo, "rev-parse", "HEAD")


@dataclass
class Goods:
    """What one assignment carries; change a field before `command` to bend it."""

    folder: Path
    orders: Orders
    manifest: dict[str, Any] = field(default_factory=lambda: json.loads(json.dumps(MANIFEST)))
    mcp_servers: list[dict[str, Any]] = field(default_factory=list)
    contract_changes: dict[str, Any] = field(default_factory=dict)
    imports: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        files = {"a.c": "int a;\n", "try/one/files/a.c": "int a = 1;\n"}
        self.project = commit(self.folder / "project", files)

    @property
    def kit(self) -> str:
        """The kit's commit, with the manifest as it is now."""
        repo = self.folder / "kit"
        text = json.dumps(self.manifest)
        if (repo / "kit.json").exists() and (repo / "kit.json").read_text() == text:
            return git(repo, "rev-parse", "HEAD")
        return commit(repo, {"kit.json": text})

    def bundle(self, what: str) -> tuple[str, str]:
        """Drop a bundle of the kit or the project; return its name in new/ and its SHA-256."""
        wanted = self.kit if what == "kit" else self.project
        into = self.folder / f"{what}-{wanted[:12]}.bundle"
        into.unlink(missing_ok=True)
        sha256, _ = make_bundle(self.folder / what, CommitId(wanted), into)
        self.orders.drop(into.read_bytes(), into.name)
        return into.name, sha256

    def add(self, what: str, path: str, sha256: str | None, **more: object) -> None:
        repo, wanted = ("tiny", self.kit) if what == "kit" else ("matmul", self.project)
        self.imports.append(
            {"kind": f"{what}_bundle", "path": path, "repo": repo, "commit": wanted}
            | ({} if sha256 is None else {"sha256": sha256})
            | more
        )

    def pack(self) -> None:
        """Drop both bundles and name them as imports."""
        for what in ("kit", "project"):
            path, sha256 = self.bundle(what)
            self.add(what, path, sha256)

    def contract(self) -> dict[str, Any]:
        return {
            "schema_version": 1,
            "name": "faster",
            "campaign": "hill_climb",
            "task": "make it faster",
            "project": {
                "repo": "matmul",
                "commit": self.project,
                "kit": {"repo": "tiny", "commit": self.kit},
            },
            "cells": ["small"],
            "objective": {"primary": {"metric": "flops"}},
            "agents": {
                "workers": {"backend": "replay", "options": {"from": f"{self.project}:try"}}
            },
            "isolation": "any",
        } | self.contract_changes

    def command(self, **changed: object) -> bytes:
        body: dict[str, Any] = {
            "contract": self.contract(),
            "imports": self.imports,
            "mcp_servers": self.mcp_servers,
            "providers": {"mcp": []},
        }
        return self.orders.sealed(self.orders.payload("assign_campaign", body, **changed))


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
