"""A process that writes to a ledger and says what is acknowledged, until it is ended.

Usage: producer.py PATH MODE; one line `SEQ HEAD` after each append. MODE `groups` appends 1,
5 and 50 events in turn without end; `synced` appends 200 groups of 1 to 3 and says how often
each was synced, by the size of the file SYNCS, to which somebody writes a byte for each; `full`
appends until the disk refuses, makes room, opens the ledger again and goes on; `faulty`
appends 12 lists of 3 and says each that is durable, until the disk refuses.
"""

import os
import resource
import sys
from pathlib import Path

from tests.ledger.facts import Clock, Facts
from thermite.command.signing_key import SigningKey
from thermite.errors import LedgerError, LedgerUnavailableError
from thermite.harness.book import make_ledger, open_ledger
from thermite.ledger.append import Ledger

KEY = SigningKey.from_raw(bytes(range(32)))
CLOCK = Clock()


def tell(*words: object) -> None:
    sys.stdout.write(" ".join(str(word) for word in words) + "\n")
    sys.stdout.flush()


def opened(path: Path, facts: Facts) -> Ledger:
    if path.exists():
        return open_ledger(path, KEY, witnessed=0)
    return make_ledger(path, facts.opened(), KEY)


def groups(ledger: Ledger, facts: Facts) -> None:
    while True:
        for count in (1, 5, 50):
            ledger.append([facts.steered() for _ in range(count)])
            tell(ledger.size, ledger.head.hex())


def synced(ledger: Ledger, facts: Facts) -> None:
    counted = Path(os.environ["SYNCS"])
    for number in range(200):
        before = counted.stat().st_size
        ledger.append([facts.steered() for _ in range(number % 3 + 1)])
        tell(counted.stat().st_size - before)


def faulty(ledger: Ledger, facts: Facts) -> None:
    for _ in range(12):
        ledger.append([facts.steered() for _ in range(3)])
        tell(ledger.size, ledger.head.hex())


def full(path: Path, facts: Facts) -> None:
    """Fill what there is; `ballast` beside the ledger, or a soft limit, is what can be freed."""
    ballast = path.with_name("ballast")
    ledger = opened(path, facts)
    try:
        while True:
            ledger.append([facts.steered("x" * 4000) for _ in range(4)])
            acknowledged = ledger.size, ledger.head
    except LedgerUnavailableError as error:
        tell(error)
    assert (ledger.size, ledger.head) == acknowledged, "size and head are what was acknowledged"
    assert ledger.problem is not None
    try:
        ledger.append([facts.steered()])
    except LedgerUnavailableError as error:
        tell(error)
    else:
        raise AssertionError("a ledger whose disk refused takes nothing more")
    ledger.close()
    if ballast.exists():
        ballast.unlink()
    else:
        hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    with opened(path, facts) as again:
        assert again.size >= acknowledged[0], "an acknowledged event is there"
        assert again.size % 4 == 1, "no list is there in half"
        again.append([facts.steered()])
        tell("size", acknowledged[0], again.size)


def main() -> None:
    path, mode = Path(sys.argv[1]), sys.argv[2]
    facts = Facts(KEY, CLOCK)
    if mode == "full":
        full(path, facts)
        return
    with opened(path, facts) as ledger:
        {"groups": groups, "synced": synced, "faulty": faulty}[mode](ledger, facts)


if __name__ == "__main__":
    try:
        main()
    except LedgerError as error:
        sys.exit(str(error))
