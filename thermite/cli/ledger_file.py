"""The ledger that an argument names: the file itself, or the rig's folder that holds it."""

from pathlib import Path

from thermite.cli.exits import CommandEnds, Exit


def ledger_at(path: Path) -> Path:
    """Return the ledger's file.

    Raises:
        CommandEnds: there is none (not found).
    """
    file = path / "ledger.db" if path.is_dir() else path
    if not file.exists():
        raise CommandEnds(Exit.NOT_FOUND, f"there is no ledger at {file}")
    return file
