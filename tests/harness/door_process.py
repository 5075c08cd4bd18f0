"""A door as a process, for tests that kill it: argv is the rig's folder, a descriptor, a seed."""

import socket
import sys
import threading
from pathlib import Path
from typing import cast

from tests.harness.live import Bench, NoStages
from thermite.command.signing_key import SigningKey
from thermite.harness import clock
from thermite.harness.book import Book
from thermite.harness.door import Door
from thermite.harness.folder import RigFolder
from thermite.harness.outbox import witnessed
from thermite.ledger.append import Ledger
from thermite.rig.stages import Stages
from thermite.schema.rig_settings import RigSettings


def main(state: str, descriptor: str, seed: str) -> None:
    folder, key = RigFolder(Path(state)), SigningKey.from_raw(bytes.fromhex(seed))
    size = witnessed(folder.outbox, key.public)
    ledger = Ledger.open(folder.ledger, key, now=clock.stamp, witnessed=size)
    bench = Bench(Book(ledger, folder.ledger), folder, cast("Stages", NoStages()))
    ended = threading.Event()
    peer = socket.socket(fileno=int(descriptor))
    Door(bench, key, RigSettings(), peer, lambda _: ended.set()).start(lambda _: None)
    ended.wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
