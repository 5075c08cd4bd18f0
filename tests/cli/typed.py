"""One command line for every command, as somebody would type it at a desk without a rig."""

import json
import shutil
import subprocess
import sys
from collections.abc import Container, Mapping
from typing import NamedTuple

from tests.cli.operator_desk import ROOT, Desk

GOLDEN = ROOT / "tests/golden/promotion/ledger.db"
ORDER = ("--rig", "bench", "--timeout-s", "0")
ASSIGN = ("Проект 🚀/contract.json", "--kit", "kit", "--rig", "bench")
NOT_TYPED = {"demo", "rig serve", "rig init", "rig remove"}
"""Commands that no line here stands for: they serve a rig, or change this machine's accounts."""
STREAMS = {"watch", "ledger export", "ledger tail"}
"""Commands that print a document for each line."""
TAKES_SECONDS = {"judge", "rig doctor", "rig selftest"}

# Exit code, then what is typed; the later ones find what the earlier ones have made.
TYPED: tuple[tuple[int, str, tuple[str, ...]], ...] = (
    (0, "init", ("mine", "--example", "matmul")),
    (0, "keygen", ("spare.key", "--no-passphrase")),
    (0, "key list", ()),
    (0, "key trust", ("trust.txt", "--rig", "bench", "--version", "2")),
    (0, "key revoke", ("0" * 32, "--rig", "bench")),
    (0, "key rotate", ("trust.txt", "--new-root", "spare.key", "--rig", "bench", "--version", "3")),
    (0, "rig add", ("again", "--inbox", "rig/inbox")),
    (0, "rig list", ()),
    (0, "rig access set", ("work", "--for", "https://h/", "--secret", "s.txt", "--state", "rig")),
    (0, "rig access list", ("--state", "rig")),
    (0, "rig access remove", ("work", "--state", "rig")),
    (0, "settings access add", ("work",)),
    (0, "settings access list", ()),
    (0, "settings access remove", ("work",)),
    (0, "settings show", ()),
    (0, "settings mcp add", ("brain",)),
    (0, "settings mcp list", ()),
    (0, "settings mcp remove", ("brain",)),
    (0, "estimate", ASSIGN),
    (0, "assign", (*ASSIGN, "--dry-run")),
    (0, "assign", ASSIGN),
    (3, "campaign pause", ("4f2a", *ORDER)),
    (3, "campaign resume", ("4f2a", *ORDER)),
    (3, "campaign stop", ("4f2a", *ORDER)),
    (3, "campaign steer", ("4f2a", "tiles", *ORDER)),
    (3, "campaign extend", ("4f2a", "attempts=9", *ORDER)),
    (3, "campaign resolve", ("4f2a", "7", "release", *ORDER)),
    (3, "campaign review", ("4f2a", "3", "clear", "met", *ORDER)),
    (0, "campaign list", ("--rig", "bench")),
    (0, "campaign report", ("--state", "led")),
    (0, "campaign compare", ("led", "led")),
    (7, "receipts checkpoint", ORDER),
    (0, "receipts list", ("--rig", "bench")),
    (4, "receipts verify", ("rig/outbox/rig.json", "--rig", "bench")),
    (0, "inbox list", ("--rig", "bench")),
    (0, "inbox drop", ("s.txt", "--rig", "bench")),
    (0, "kit list", ()),
    (0, "kit new", ("fresh", "--language", "c")),
    (0, "kit check", ("kit",)),
    (0, "kit fit", ("kit", "--contract", "Проект 🚀/contract.json")),
    (0, "kit show", ("kit",)),
    (0, "kit bundle", ("kit",)),
    (4, "kit test", ("kit",)),
    (0, "watch", ("--state", "led", "--until", "ended")),
    (0, "status", ("--state", "led")),
    (0, "verdicts", ("--state", "led")),
    (0, "show", ("1", "--state", "led")),
    (0, "export", ("163", "--state", "led", "-o", "gain.json")),
    (0, "verify", ("gain.json",)),
    (3, "ledger accept-loss", ("nowhere", "--yes")),
    (0, "ledger backup", ("led", "copy.db")),
    (0, "ledger export", ("led",)),
    (0, "ledger replay", ("led",)),
    (0, "ledger tail", ("led", "-n", "500")),
    (0, "ledger views", ("led",)),
    (0, "audit", ("led",)),
    (1, "judge", ("Проект 🚀", "--kit", "kit")),
    (0, "judge simulate", ("--campaigns", "1", "--attempts", "2", "--rule", "best-single")),
    (0, "rig doctor", ()),
    (3, "rig selftest", ("--kit", "kit")),
)


class Ran(NamedTuple):
    """One line that was run: what it should end with, how it ended, what it printed."""

    name: str
    wanted: int
    code: int
    said: str


def lay_out(desk: Desk) -> Desk:
    """Put what the lines above name into a desk's folder."""
    (desk.folder / "project").rename(desk.folder / "Проект 🚀")
    (desk.folder / "led").mkdir()
    shutil.copy(GOLDEN, desk.folder / "led/ledger.db")
    (desk.folder / "s.txt").touch(0o600)
    (desk.folder / "s.txt").write_text("a-token\n")
    public = next((desk.folder / "control/keys").glob("*.pub")).read_text().strip()
    (desk.folder / "trust.txt").write_text(f"{public} role=root,command\n")
    return desk


def run_all(
    desk: Desk,
    *also: str,
    env: Mapping[str, str],
    read: int | None = None,
    without: Container[str] = (),
) -> tuple[list[Ran], str]:
    """Run every line, with `also` at its end; return what each came to, and all of stderr."""
    typed = [one for one in TYPED if one[1] not in without]
    done = subprocess.run(
        [sys.executable, "-m", "tests.cli.many", *([] if read is None else [str(read)])],
        input=json.dumps([(*name.split(), *argv, *also) for _, name, argv in typed]),
        capture_output=True,
        text=True,
        cwd=desk.folder,
        env={**desk.env, "THERMITE_ISOLATION": "none", **env},
        check=True,
        timeout=300,
    )
    came = json.loads(done.stdout)
    return [
        Ran(name, wanted, code, said)
        for (wanted, name, _), (code, said) in zip(typed, came, strict=True)
    ], done.stderr
