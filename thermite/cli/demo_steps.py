"""The demo's steps: each is a public command in a process of its own, printed before it runs."""

import shutil
from pathlib import Path
from typing import Final

from thermite.campaign.state import Assignment
from thermite.cli.follow import Follower
from thermite.cli.output import Output
from thermite.shipped import shipped

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
        self._say("1. The operator's key: nobody without it makes the rig do anything.")
        self._run("keygen", "--role", "command", str(self.key), "--no-passphrase")
        self._say("2. A project to make faster, and the kit that judges it: agents never see it.")
        self._run("init", str(self.project), "--example", "matmul")
        shutil.copytree(shipped("kits/demo-cpu"), self.kit)
        self._lay_out_proposals()

    @property
    def key(self) -> Path:
        """The operator's private key."""
        return self.control / "keys" / "operator.key"

    def rig_argv(self) -> list[str]:
        """Return the command that serves the demo's rig."""
        public = self.key.with_suffix(".pub")
        return thermite("rig", "serve", "--state", str(self.rig_state), "--trust", str(public))
