"""Where control keeps what: one folder, private to whoever runs it."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from thermite.errors import UsageError

VARIABLE: Final = "THERMITE_DATA"
"""Names the folder, where no `--data` does."""


@dataclass(frozen=True)
class ControlHome:
    """Control's folder; nothing is made by asking for a path."""

    root: Path

    @property
    def keys(self) -> Path:
        """Private keys, `<name>.key`, and beside each its public line, `<name>.pub`."""
        return self.root / "keys"

    @property
    def kits(self) -> Path:
        """Kept kits: `<name>.git`, bare."""
        return self.root / "kits"

    @property
    def receipts(self) -> Path:
        """Receipts and the newest checkpoint, by rig id."""
        return self.root / "receipts"

    @property
    def rigs(self) -> Path:
        """The rigs that control knows, by the names it gave them."""
        return self.root / "rigs.toml"

    @property
    def settings(self) -> Path:
        """Settings, so far the MCP servers of Providers."""
        return self.root / "settings.toml"

    def make(self) -> None:
        """Make the folder and those below it that are missing, 0700 whatever the umask."""
        for folder in (self.root, self.keys, self.kits, self.receipts):
            if not folder.is_dir():
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                folder.chmod(0o700)


def control_home(given: Path | None, environment: Mapping[str, str]) -> ControlHome:
    """Return control's folder: as given, else by THERMITE_DATA, else in XDG's data folder.

    Raises:
        UsageError: nothing names a place; whoever set up this shell can mend that.

    Source: XDG Base Directory Specification 0.8: a relative path in XDG_DATA_HOME is ignored.
    """
    if given is not None:
        return ControlHome(given.absolute())
    if environment.get(VARIABLE):
        return ControlHome(Path(environment[VARIABLE]).absolute())
    xdg = environment.get("XDG_DATA_HOME", "")
    if Path(xdg).is_absolute():
        return ControlHome(Path(xdg) / "thermite")
    user = environment.get("HOME", "")
    if not Path(user).is_absolute():
        raise UsageError(
            f"neither {VARIABLE} nor XDG_DATA_HOME nor HOME names a folder for control's keys and"
            " kits: give --data DIR"
        )
    return ControlHome(Path(user) / ".local" / "share" / "thermite")
