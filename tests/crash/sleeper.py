"""A kit whose run is trivial, a project for it, and candidates that are known.

A candidate is a few lines of sh: it sleeps as long as it says, and writes its answer. The
build takes comments out and refuses what sh can't read, the check compares one word, the
metric is the run's time. Gains are factors of two: far above any noise of sleeping.
"""

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

GIT = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]

KIT: dict[str, Any] = {
    "schema_version": 1,
    "name": "sleeper",
    "target": "cpu",
    "build": {
        "copy": ["build.sh"],
        "command": ["sh", ".kit/build.sh"],
        "outputs": ["out/program.sh"],
        "timeout_s": 60,
        "rss_mib": 256,
        "disk_mib": 16,
    },
    "cells": {"nap": {"n": 1}},
    "run": {
        "command": ["sh", "{build:out/program.sh}", "{out}"],
        "timeout_s": 10,
        "rss_mib": 256,
        "disk_mib": 16,
    },
    "metrics": {"seconds": {"unit": "s", "from": "time"}},
    "check": {"command": ["sh", "{kit:check.sh}", "{out}"], "timeout_s": 60},
}
BUILD = "sh -n program.sh && mkdir -p out && grep -v '^#' program.sh > out/program.sh\n"
CHECK = """
said=$(cat "$1/answer")
if [ "$said" = right ]; then echo '{"pass": true}'
else echo '{"pass": false, "reasons": ["the answer is not right"]}'; fi
"""


def nap(seconds: float, *, says: str = "right", comment: str = "") -> str:
    """A candidate that sleeps so long and answers."""
    head = f"# {comment}\n" if comment else ""
    return f'{head}sleep {seconds}\necho {says} > "$1/answer"\n'


BASE = nap(0.12)
CANDIDATES = {
    "01-wrong": nap(0.01, says="wrong"),
    "02-crashes": "exit 3\n",
    "03-slower": nap(0.24),
    "04-unreadable": "if\n",
    "05-same": BASE,
    "06-comment": nap(0.12, comment="nothing but a comment"),
    "07-quick": nap(0.06),
    "08-slower-again": nap(0.24),
    "09-slow": nap(0.18),
    "10-slow-too": nap(0.2),
    "11-quicker": nap(0.03),
    "12-slow-still": nap(0.15),
}
EXPECTED = {
    "01-wrong": "invalid",
    "02-crashes": "crash_candidate",
    "03-slower": "regressed",
    "04-unreadable": "invalid",
    "05-same": "no_change",
    "06-comment": "not_better",
    "07-quick": "promoted",
    "08-slower-again": "duplicate",
    "09-slow": "regressed",
    "10-slow-too": "regressed",
    "11-quicker": "promoted",
    "12-slow-still": "regressed",
}
CONTRACT: dict[str, Any] = {
    "schema_version": 1,
    "name": "naps",
    "campaign": "hill_climb",
    "task": "sleep less",
    "project": {"repo": "naps", "commit": "HEAD", "editable": ["program.sh"]},
    "cells": ["nap"],
    "objective": {"primary": {"metric": "seconds", "direction": "min"}},
    "judging": {"startup_share_max": 1, "max_discard_share": 0.9, "settle_ms": 1},
    "agents": {"workers": {"backend": "replay", "options": {"from": "../proposals"}}},
    "isolation": "any",
}


def lay_out(
    home: Path,
    *,
    base: str = BASE,
    candidates: Mapping[str, str] = CANDIDATES,
    kit: Mapping[str, object] = KIT,
    contract: Mapping[str, object] = CONTRACT,
) -> Path:
    """Make kit/, project/ and proposals/ in a folder, and return the contract's path."""
    write(home / "kit", {"kit.json": json.dumps(kit), "build.sh": BUILD, "check.sh": CHECK})
    project = home / "project"
    write(project, {"program.sh": base})
    for name, program in candidates.items():
        write(home / "proposals" / name / "files", {"program.sh": program})
    for args in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "first"]):
        subprocess.run([*GIT, "-C", str(project), *args], check=True, capture_output=True)
    path = project / "contract.json"
    path.write_text(json.dumps(contract), encoding="utf-8")
    return path


def write(folder: Path, files: Mapping[str, str]) -> None:
    """Write text files into a folder, which is made."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
