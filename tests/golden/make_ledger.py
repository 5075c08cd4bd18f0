"""Makes the golden ledger: `python -m tests.golden.make_ledger FOLDER`.

A whole campaign of one promotion, a refused command, and forty quiet events, from fixed
keys, ids and times: its rows are the same wherever and whenever it is made.
"""

import sys
from pathlib import Path

from tests.ledger.facts import Clock, Facts
from thermite.command.signing_key import SigningKey
from thermite.ledger.append import Ledger

KEY = SigningKey.from_raw(bytes(range(32)))


def make(folder: Path) -> Path:
    """Make `ledger.db` in a folder and return its path."""
    clock = Clock()
    facts = Facts(KEY, clock)
    path = folder / "ledger.db"
    with Ledger.create(path, facts.opened(), KEY, now=clock) as ledger:
        ledger.append([facts.probe()])
        clock.turn(1)
        ledger.append(facts.campaign())
        clock.turn(1)
        ledger.append([facts.refused()])
        clock.turn(90)
        ledger.append([facts.tool() for _ in range(40)])
    path.with_suffix(".lock").unlink()
    return path


if __name__ == "__main__":
    make(Path(sys.argv[1]))
