"""Where a rig keeps what: the paths below its state folder. Source: the page "Files of a rig"."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class RigFolder:
    """The state folder of one rig; nothing is made by asking for a path."""

    state: Path

    @property
    def ledger(self) -> Path:
        """The only facts."""
        return self.state / "ledger.db"

    @property
    def keys(self) -> Path:
        """The rig's key and the coin's, 0700."""
        return self.state / "keys"

    @property
    def store(self) -> Path:
        """Builds by key."""
        return self.state / "store"

    @property
    def blobs(self) -> Path:
        """Larger things by SHA-256."""
        return self.state / "blobs"

    @property
    def models(self) -> Path:
        """Model files by SHA-256."""
        return self.state / "models"

    @property
    def scratch(self) -> Path:
        """The harness's own temporary files; emptied at its start."""
        return self.state / "exports" / "scratch"

    @property
    def inbox(self) -> Path:
        """Dropped commands and bundles."""
        return self.state / "inbox"

    @property
    def outbox(self) -> Path:
        """Receipts, checkpoints and `rig.json`."""
        return self.state / "outbox"

    @property
    def repos(self) -> Path:
        """The kept repositories of kits and projects."""
        return self.state / "repos"

    def kit_repo(self, repo: str) -> Path:
        """The kept repository of a kit, bare."""
        return self.repos / f"kit-{repo}.git"

    def project_repo(self, repo: str) -> Path:
        """The kept repository of a project, bare; candidates are committed into it."""
        return self.repos / f"project-{repo}.git"

    def kit_export(self, repo: str, commit: str) -> Path:
        """The files of a kit at one commit."""
        return self.state / "exports" / f"kit-{repo}-{commit}"

    def make(self) -> None:
        """Make the private folders that are missing, 0700."""
        for folder in (self.keys, self.store, self.blobs, self.models, self.scratch):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.repos.mkdir(mode=0o700, exist_ok=True)
