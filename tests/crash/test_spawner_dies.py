"""The spawner is killed in the middle of a run: everything of it ends, and the rig goes on."""

from pathlib import Path

import pytest

from tests.crash.sleeper import CONTRACT, lay_out, nap
from tests.namespaced import possible
from tests.served import served
from tests.serving import argv_of

MARK = "86399"
STAYS = f"setsid sleep {MARK} > /dev/null 2>&1 &\nsleep 15\n{nap(0.01)}"


@pytest.mark.parametrize("users", [pytest.param(False, id="one"), pytest.param(True, id="users")])
def test_nothing_outlives_the_spawner_once_its_rig_is_served_again(
    home: Path, *, users: bool
) -> None:
    if users and not possible():
        pytest.skip("no pid namespace can be made here: this needs root and CAP_SYS_ADMIN")
    contract = lay_out(home, candidates={"01-stays": STAYS}, contract=CONTRACT)
    with served(home, users=users) as rig:
        rig.serve()
        rig.know()
        rig.assign(contract)
        rig.until(lambda: any(argv_of(one)[-1:] == [MARK] for one in rig.everything()))
        before = rig.everything()
        assert rig.kill("spawner")
        rig.until(lambda: rig.exit_codes() == [-9])
        rig.serve_until_there()
        assert [argv_of(one) for one in before if argv_of(one)] == []  # a zombie has none
