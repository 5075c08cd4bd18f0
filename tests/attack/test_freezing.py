"""A slot whose processes wake each other is frozen for a block all the same, and not ended."""

import os
import signal
import threading
import time

import pytest

from tests.attack.candidates import KILL_LOOP
from tests.levels import LEVELS, Rigs
from tests.spawner.conftest import Runner
from thermite.schema.stage import LevelName
from thermite.spawner import scan
from thermite.spawner.block import until_gone
from thermite.spawner.ground import Live, Slot
from thermite.spawner.loop import Loop
from thermite.spawner.signalling import send_all
from thermite.spawner.vocabulary import RefusedError

WAKERS = (
    "import os\nos.fork(), os.fork(), os.fork()\nopen(f'at-{os.getpid()}', 'w').close()\n"
    + KILL_LOOP.format("SIGCONT")
)
BLOCKS = 5
PATIENCE_S = 30.0


@pytest.mark.parametrize("level", [one for one in LEVELS if one != "none"])
def test_eight_that_wake_each_other_in_a_loop_stand_still_in_every_block(
    rigs: Rigs, level: LevelName
) -> None:
    """At level none the loop would reach the test's own processes."""
    rig, said = rigs.at(level), []
    with rig.slot("worker-0") as slot:
        runner = Runner(rig, slot)
        thread = threading.Thread(target=lambda: said.append(runner.python(WAKERS, timeout_s=60)))
        thread.start()
        give_up = time.monotonic() + PATIENCE_S
        while len(list(slot.folder.glob("at-*"))) < 8 and time.monotonic() < give_up:
            time.sleep(0.01)
        for _ in range(BLOCKS):
            with rig.block():
                assert thread.is_alive()
        slot.stop()
        thread.join()
    assert said[0].killed is None  # it was stopped, and no block had to end it


def test_signals_come_on_end_to_each_of_those_that_were_seen() -> None:
    read, write = os.pipe()
    number = signal.SIGRTMIN
    children = []
    for _ in range(3):
        signal.pthread_sigmask(signal.SIG_BLOCK, {number})
        if (child := os.fork()) == 0:
            count = 0
            while count < 16 and signal.sigtimedwait({number}, PATIENCE_S):
                count += 1
            os.write(write, bytes([count]))
            os._exit(0)
        children.append(child)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
    send_all([one for pid in children if (one := scan.seen(pid))], number, 16)
    for child in children:
        os.waitpid(child, 0)
    assert os.read(read, 9) == bytes([16] * 3)
    os.close(read)
    os.close(write)


def test_a_block_begins_only_when_what_could_not_be_frozen_is_proven_gone() -> None:
    loop = Loop()
    live = Live(0, -1, loop.start(iter(())))  # type: ignore[arg-type]
    slot = Slot("worker-0", network=False, identity=None, live=live)
    waiting = until_gone(slot, live)
    assert next(waiting).deadline is not None
    assert waiting.send(frozenset()).deadline is not None
    slot.live, slot.quarantined = None, "isolation: 1 processes of worker-0 survived"
    with pytest.raises(RefusedError, match="survived"):
        waiting.send(frozenset())
