"""A kit that sums the numbers below n, its candidates, and a desk on a real rig."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import msgspec

from tests.judge.job.simulated_desk import contract
from thermite.judge.build.store import BuildStore
from thermite.judge.job import Desk, judge
from thermite.kit.export import tree_entries, tree_of
from thermite.kit.folder import commit_of_folder
from thermite.kit.manifest import load_kit
from thermite.rig.stages import Stages
from thermite.rig.start import spawner
from thermite.schema.contract import Contract, RepoAt
from thermite.schema.event import Verdict
from thermite.schema.job import Job, Revision
from thermite.schema.strict import Strict

MANIFEST = {
    "schema_version": 1,
    "name": "sums",
    "target": "cpu",
    "build": {
        "copy": ["bench"],
        "command": ["sh", ".kit/bench/build.sh"],
        "outputs": ["out/bench"],
        "timeout_s": 20,
        "rss_mib": 512,
        "disk_mib": 64,
    },
    "cells": {
        "small": {"n": 40000000, "work": 40000000},
        "held": {"n": 48000000, "work": 48000000},
    },
    "run": {
        "command": ["{build:out/bench}", "{params}", "{out}", "{kit:bench/given.txt}"],
        "copy": ["bench/given.txt"],
        "timeout_s": 10,
        "rss_mib": 64,
        "disk_mib": 8,
    },
    "metrics": {"speed": {"unit": "sums/s", "work": "work"}},
    "check": {"command": ["python3", "{kit:check.py}", "{params_json}", "{out}"]},
}
KIT_FILES = {
    "bench/build.sh": "set -e\nmkdir -p out\ncc -O1 -o out/bench .kit/bench/driver.c sum.c\n",
    "bench/given.txt": "given\n",
    "bench/driver.c": """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
unsigned long sum(unsigned long n);
int main(int argc, char **argv) {
    char line[64], path[4096];
    unsigned long n = 0;
    FILE *params = fopen(argv[1], "r");
    while (fgets(line, sizeof line, params))
        if (!strncmp(line, "n=", 2)) n = strtoul(line + 2, 0, 10);
    FILE *given = fopen(argv[3], "r");
    if (!given || !fgets(line, sizeof line, given)) return 9;
    snprintf(path, sizeof path, "%s/sum", argv[2]);
    unsigned long found = sum(n);
    FILE *out = fopen(path, "w");
    fprintf(out, "%lu", found);
    return fclose(out);
}
""",
    "check.py": """
import json, pathlib, sys
n = json.load(open(sys.argv[1]))["n"]
found = pathlib.Path(sys.argv[2], "sum").read_text()
wrong = [] if found == str(n * (n - 1) // 2) else [f"the sum is {found}"]
print(json.dumps({"pass": not wrong, "reasons": wrong}))
""",
}
SLOW = """
unsigned long sum(unsigned long n) {
    volatile unsigned long total = 0;
    for (unsigned long i = 0; i < n; i++) total += i;
    return total;
}
"""
FAST = SLOW.replace("i++) total += i;", "i += 8) total += 8 * i + 28;")
HEAD = "#include <stdlib.h>\n#include <stdio.h>\n#include <string.h>\n#include <unistd.h>\n"

Candidate: TypeAlias = str | Mapping[str, str] | Revision
"""The text of sum.c, several files, or a commit."""


def doing(statement: str) -> str:
    """A candidate that does something else as well."""
    return HEAD + FAST.replace("volatile", f"{statement}\n    volatile")


@dataclass
class Workshop:
    """A project's repository, a kit's folder and a desk on a rig."""

    folder: Path
    rig: Stages
    kit: Path
    appended: list[Strict] = field(default_factory=list)

    def commit(self, files: Mapping[str, str]) -> Revision:
        tree = self.folder / f"tree-{len(list(self.folder.iterdir()))}"
        write(tree, files)
        repo = self.folder / "project.git"
        commit = commit_of_folder(repo, tree)
        return Revision(commit=commit, tree=tree_of(repo, commit))

    def desk(self, **changed: object) -> Desk:
        for name in ("store", "scratch"):
            (self.folder / name).mkdir(exist_ok=True)
        kit = load_kit(self.kit)
        return Desk(
            stages=self.rig,
            kit=msgspec.structs.replace(kit, **changed),
            kit_folder=self.kit,
            export=lambda commit: tree_entries(self.folder / "project.git", commit),  # type: ignore[arg-type]
            store=BuildStore(self.folder / "store"),
            append=self._append,
            stopping=lambda: False,
            scratch=self.folder / "scratch",
            toolchain="cc",
        )

    def job(self, candidate: Candidate, **changed: object) -> Job:
        files = {"sum.c": candidate} if isinstance(candidate, str) else candidate
        plain = Job(
            kind="attempt",
            assignment="a" * 32,
            attempt=1,
            tries=1,
            candidate=files if isinstance(files, Revision) else self.commit(files),
            champion=self.commit({"sum.c": SLOW}),
            k=1,
            order_seed="33" * 32,
            contract=wanted(),
            contract_sha256="c" * 64,
            kit=RepoAt(repo="sums", commit="f" * 40),
            judged_outputs={},
            history=[],
        )
        return msgspec.structs.replace(plain, **changed)

    def judged(self, candidate: Candidate, **changed: object) -> Verdict:
        verdict = judge(self.job(candidate, **changed), self.desk())
        assert isinstance(verdict, Verdict)
        assert list((self.folder / "scratch").iterdir()) == []
        return verdict

    def of(self, kind: type) -> list:  # type: ignore[type-arg]
        return [fact for fact in self.appended if isinstance(fact, kind)]

    def _append(self, payloads: Sequence[Strict]) -> None:
        self.appended += payloads


def wanted(**changed: object) -> Contract:
    whole: dict[str, object] = {
        "cells": ["small"],
        "held_out_cells": ["held"],
        # Beside other work a probe can take as long as a run: that is not what is tried here.
        "judging": {
            "startup_share_max": 1.0,
            "settle_ms": 0,
            "max_discard_share": 0.9,
            "suspect_gain": 1000.0,
        },
    }
    return contract(**(whole | changed))


def write(folder: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def change(lent: Workshop, section: str, **fields: object) -> None:
    """Change fields of a section of the kit's manifest."""
    manifest = json.loads((lent.kit / "kit.json").read_text())
    manifest[section] |= fields
    (lent.kit / "kit.json").write_text(json.dumps(manifest))


def alone(lent: Workshop, candidate: Candidate = FAST, cell: str = "small") -> Verdict:
    """Judge a candidate in one cell without a champion: is it valid at all?"""
    asked = wanted(objective=None, cells=[cell], held_out_cells=[])
    return lent.judged(candidate, kind="single", champion=None, contract=asked)


def furnish(folder: Path, rig: Stages) -> Workshop:
    """Return a workshop in a folder, with the kit laid out."""
    kit = folder / "kit"
    write(kit, {**KIT_FILES, "kit.json": json.dumps(MANIFEST)})
    return Workshop(folder, rig, kit)


@contextmanager
def opened(folder: Path) -> Iterator[Workshop]:
    """Run a rig at level none for one workshop."""
    with spawner(folder / "rig", isolation="none") as rig:
        yield furnish(folder, rig)
