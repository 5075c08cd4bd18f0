"""A harness that was killed while its git made a repository does not wait for that git for ever."""

from pathlib import Path

from tests.crash.sleeper import lay_out
from tests.served import served


def test_an_order_is_taken_although_a_killed_git_left_its_lock(home: Path) -> None:
    with served(home) as rig:
        contract = lay_out(home)
        half = rig.state_folder / "repos" / "kit-sleeper.git"
        (half / "refs" / "heads").mkdir(parents=True)
        (half / "HEAD.lock").touch()
        rig.serve()
        rig.know()
        rig.assign(contract)
        rig.until(lambda: rig.assignment is not None, most_s=60)
