"""What a stage leaves in shared folders is gone before its slot's next one begins."""

import threading
import time

from tests.spawner.conftest import Runner
from thermite.rig.stages import Stages

LEFT = "/dev/shm/thermite-left-$(id -u)"
LONGEST_S = 20.0


def test_a_stage_that_ends_meanwhile_hides_nothing_that_another_leaves(users_rig: Stages) -> None:
    """It looked at the folder, found nothing of its own, and it was taken for looked at."""
    with users_rig.slot("builder-0") as one, users_rig.slot("run-0") as other:
        leaver, passer = Runner(users_rig, one), Runner(users_rig, other)
        for runner in (leaver, passer):
            runner.sh("true")  # the first look of a user is at everything
        text = f"touch {LEFT}; touch there; while [ ! -e ended ]; do sleep 0.02; done"
        thread = threading.Thread(target=leaver.sh, args=(text,))
        thread.start()
        give_up = time.monotonic() + LONGEST_S
        while not (one.folder / "there").exists() and time.monotonic() < give_up:
            time.sleep(0.01)
        time.sleep(0.1)  # a folder that changed a moment ago is always looked at once more
        passer.sh("true")
        (one.folder / "ended").touch()
        thread.join()
        assert leaver.sh(f"ls {LEFT}").stdout == b""
