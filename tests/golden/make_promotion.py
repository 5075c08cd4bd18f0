"""Makes the golden ledger of a judged promotion: `python -m tests.golden.make_promotion FOLDER`.

A whole campaign on the simulated rig: real runs, blocks and decisions, with one promotion and
one candidate that is no better. Its times and ids are those of the day, so it was made once.
"""

import sys
from pathlib import Path

from tests.simulated_campaign import Home, Life
from thermite.command.signing_key import SigningKey

KEY = SigningKey.from_raw(bytes(range(1, 33)))


def make(folder: Path) -> Path:
    """Run the campaign in a folder and return the path of its ledger."""
    candidates = {"01-fast": {"ms": 80}, "02-same": {"ms": 80, "comment": 1}}
    home = Home(folder, {"ms": 100}, candidates, key=KEY, on_disk=True)
    assert Life(home).run()
    return home.rig.ledger


if __name__ == "__main__":
    make(Path(sys.argv[1]))
