"""The demo's steps: each is a public command in a process of its own, printed before it runs."""

import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Final

from thermite.campaign.state import Assignment
from thermite.cli.demo_rig import DemoRig, can_be_realtime
from thermite.cli.exits import CommandEnds, Exit
from thermite.cli.follow import Follower
from thermite.cli.output import Output
from thermite.cli.program import by_name, from_here, near, typed
from thermite.cli.watching import watching
from thermite.kit.known import case_here, known_names, read_expectation
from thermite.schema.event import IsolationProbe
from thermite.schema.protection import applied
from thermite.schema.verdict import VerdictKind
from thermite.shipped import shipped

COMMAND_S: Final = 120.0
"""The longest that one command of the demo may take, s (our figure)."""
CAMPAIGN_S: Final = 900.0
"""The longest that a demo waits for its campaign, s: ten times what it takes when busy."""
RIG: Final = "demo"


class Steps:
    """One demo in one folder.

    home/control is the operator's side, home/rig the rig's, home/project the project.
    """

    def __init__(self, output: Output, home: Path) -> None:
        self.output, self.home = output, home
        self.control, self.rig_state = home / "control", home / "rig"
        self.project, self.kit = home / "project", home / "kit"
        self.ledger = self.rig_state / "ledger.db"
        self.follower = Follower(self.ledger)

    @property
    def assignment(self) -> Assignment:
        """The demo's campaign, as the ledger has it."""
        return list(self.follower.state.assignments.values())[-1]

    def prepare(self) -> None:
        """Make a key, a project, a kit and a contract."""
        if typed() != "thermite":
            self._say("0. This thermite, so that the shell finds it by its name.")
            self._tell(by_name())
        self._say("1. The operator's key: nobody without it makes the rig do anything.")
        self._tell(f"export THERMITE_DATA={from_here(self.control)}")
        self._run("keygen", "--role", "command", str(self.key), "--no-passphrase")
        self._say("2. A project to make faster, and the kit that judges it: agents never see it.")
        self._run("init", str(self.project), "--example", "matmul")
        shutil.copytree(shipped("kits/demo-cpu"), self.kit)
        self._tell(shlex.join(["cp", "-r", str(shipped("kits/demo-cpu")), near(self.kit)]))
        self._lay_out_proposals()
        known, target = (shlex.quote(near(one)) for one in (self.kit, self.project))
        self._tell(f"cp -r {known}/candidates/[01]* {target}/proposals/")

    @property
    def key(self) -> Path:
        """The operator's private key."""
        return self.control / "keys" / "operator.key"

    def rig_argv(self) -> list[str]:
        """Return the command that serves the demo's rig."""
        public = self.key.with_suffix(".pub")
        where = ("--state", str(self.rig_state), "--trust", str(public), "--fallback")
        return thermite("rig", "serve", *where)

    def announce_rig(self) -> None:
        """Say which command is about to serve the rig."""
        self._say("3. A rig that trusts this key and nobody else, as a process of its own.")
        self.rig_state.mkdir(mode=0o711, exist_ok=True)
        lines = [f'name = "{RIG}"', 'selftest = "short"']
        lines += ["realtime_runs = true"] if can_be_realtime() else []
        (self.rig_state / "rig.toml").write_text("\n".join(lines) + "\n", encoding="utf-8")
        self._print([*self.rig_argv(), "&"])

    def order(self) -> None:
        """Make the rig known to control, and send it the signed order."""
        self._say("4. Control learns the rig's key, and sends a signed order with two bundles.")
        self._run("rig", "add", RIG, "--inbox", str(self.rig_state / "inbox"))
        contract = str(self.project / "contract.toml")
        self._run("assign", contract, "--kit", str(self.kit), "--rig", RIG, "--wait")

    def follow(self, rig: DemoRig) -> None:
        """Show the campaign until it has ended.

        Raises:
            CommandEnds: the rig ended first, or the campaign takes too long.
        """
        self._say("5. The rig works. What follows is read from its ledger, as anybody can:")
        self._print(thermite("watch", "--state", str(self.rig_state), "--until", "ended"))
        with watching(self.output, self.follower) as show:
            deadline = time.monotonic() + CAMPAIGN_S
            while not show():
                rig.check()
                if time.monotonic() > deadline:
                    raise CommandEnds(Exit.TIMEOUT, f"no end within {CAMPAIGN_S:.0f} s")
                self.follower.wait()

    def audit(self) -> dict[str, Any]:
        """Audit the ledger against what the rig signed into its outbox."""
        self._say("6. An audit by somebody who trusts neither rig nor control.")
        outbox = str(self.rig_state / "outbox")
        argv = thermite("audit", str(self.ledger), "--against", outbox)
        self._print(argv)
        done = self._process([*argv, "--json"])
        try:
            told = json.loads(done.stdout)
        except ValueError:
            raise CommandEnds(Exit.FAILED, f"the audit said: {_said(done)}") from None
        findings = [f for f in told["findings"] if f["severity"] == "finding"]
        self.output.result(f"  {len(findings)} findings" if findings else "  clean")
        return dict(told)

    def unexpected(self, verdicts: dict[str, str]) -> dict[str, str]:
        """Return the candidates whose verdict is none that the kit's author expects."""
        probe = self.follower.state.isolation
        if probe is None:
            return verdicts
        found = {}
        for name, verdict in verdicts.items():
            wanted = expected(self.kit / "candidates" / name / "expect.toml", probe)
            if wanted is not None and verdict not in wanted:
                found[name] = verdict
        return found

    def _lay_out_proposals(self) -> None:
        """Copy the kit's known candidates beside the contract, without what is expected of them."""
        proposals = self.project / "proposals"
        for folder in sorted((self.kit / "candidates").iterdir()):
            if folder.is_dir() and folder.name != "base":
                hidden = shutil.ignore_patterns("expect.toml")
                shutil.copytree(folder, proposals / folder.name, ignore=hidden)

    def _say(self, text: str) -> None:
        self.output.result("")
        self.output.result(text)

    def _tell(self, command: str) -> None:
        """Show a command that the demo carries out by itself."""
        self.output.result(f"$ {command}")

    def _print(self, argv: list[str]) -> None:
        words = argv[len(thermite()) :]
        words = [word.replace(str(self.home), near(self.home)) for word in words]
        shown = ["thermite", *(word if word == "&" else shlex.quote(word) for word in words)]
        self.output.result(f"$ {' '.join(shown)}")

    def _run(self, *args: str) -> None:
        argv = thermite(*args)
        self._print(argv)
        done = self._process(argv)
        if done.returncode != 0:
            raise CommandEnds(Exit.FAILED, f"thermite {args[0]} failed: {_said(done)}")
        for line in done.stdout.splitlines():
            self.output.result(f"  {line.replace(str(self.home), self.home.name)}")

    def _process(self, argv: list[str]) -> subprocess.CompletedProcess[str]:
        env = {**os.environ, "THERMITE_DATA": str(self.control), "NO_COLOR": "1"}
        return subprocess.run(
            argv,
            env=env,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=COMMAND_S,
            check=False,
            cwd=self.home,
            stdin=subprocess.DEVNULL,
        )


def thermite(*args: str) -> list[str]:
    """Return the argv of a public command, run by this very Python."""
    return [sys.executable, "-P", "-m", "thermite", *args]


def _said(done: subprocess.CompletedProcess[str]) -> str:
    return (done.stderr or done.stdout).strip()[-2000:]


def expected(path: Path, probe: IsolationProbe) -> list[VerdictKind] | None:
    """Return the verdicts that a kit's author expects here, or None when nothing is said."""
    if not path.is_file():
        return None
    names = set(known_names(path.parent.parent.parent))
    expectation = read_expectation(path.read_bytes(), names)
    if isinstance(expectation, list):
        return None
    case = case_here(expectation, applied(probe, "cpu"))
    return None if case is None else list(case.verdict)
