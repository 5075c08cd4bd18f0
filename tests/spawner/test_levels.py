"""Which level a spawner takes, on machines that have less and less to give."""

import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.namespaced import Namespace, possible
from thermite.errors import InfrastructureError
from thermite.rig.start import spawner
from thermite.schema.stage import IsolationRecord
from thermite.spawner.ground import Ground, Level, Slot
from thermite.spawner.proving import why_not_proven
from thermite.spawner.settings import Settings

NO_ADMIN = ["setpriv", "--bounding-set=-sys_admin,-sys_ptrace"]
"""Docker's default set has neither; without the second nobody sees what others hold."""
NO_USERS = ["setpriv", "--bounding-set=-sys_admin,-setuid"]
ONE_USER = ["unshare", "--user", "--map-root-user"]
"""Root of a container that has every capability and no second user."""

NOT_FOR_ROOT = {"namespaces": "a plain user's level"}


@contextmanager
def taken(
    place: Path, less: list[str], isolation: str = "auto"
) -> Iterator[tuple[IsolationRecord, Mapping[str, str]]]:
    with (
        Namespace() as ns,
        spawner(
            place / "rig", within=[*ns.prefix, *less], isolation=isolation, run_dir=place / "run"
        ) as stages,
    ):
        yield stages.isolation, stages.passed_over
        assert ns.bystanders() == 3


def programs(less: list[str]) -> list[str]:
    """Return the command with its program's path, which the namespace's init needs."""
    found = subprocess.run(["which", *less[:1]], capture_output=True, text=True, check=True).stdout
    return [found.strip(), *less[1:]]


@pytest.mark.parametrize(
    ("less", "level", "passed"),
    [
        pytest.param(["env"], "users+namespaces", {}, id="everything"),
        pytest.param(NO_ADMIN, "users", {"users+namespaces": "CAP_SYS_ADMIN"}, id="no admin"),
        pytest.param(
            NO_USERS,
            "none",
            {"users+namespaces": "CAP_SETUID", "users": "CAP_SETUID", **NOT_FOR_ROOT},
            id="no setuid",
        ),
        pytest.param(
            ONE_USER,
            "none",
            {
                "users+namespaces": "can't be taken here",
                "users": "can't be taken here",
                **NOT_FOR_ROOT,
            },
            id="no second user",
        ),
    ],
)
def test_auto_takes_the_best_that_its_canaries_prove_and_says_what_it_passed_over(
    place: Path, less: list[str], level: str, passed: dict[str, str]
) -> None:
    if not possible():
        pytest.skip("no pid namespace can be made here: this needs root and CAP_SYS_ADMIN")
    with taken(place, programs(less)) as (isolation, passed_over):
        assert isolation.level == level
        assert ("unmapped_memory" in isolation.gaps) is (less == NO_ADMIN)
        assert passed_over.keys() == passed.keys()
        for name, why in passed.items():
            assert why in passed_over[name]


def test_where_there_is_one_user_the_folder_of_the_leases_need_not_be_had(place: Path) -> None:
    """As in a container whose /run is not its own: no rig started there at all."""
    if not possible():
        pytest.skip("no pid namespace can be made here: this needs root and CAP_SYS_ADMIN")
    (place / "run").mkdir()
    (place / "run/uids").touch()  # no folder, and none can be made
    with taken(place, programs(ONE_USER)) as (isolation, passed_over):
        assert isolation.level == "none"
        assert "can't be taken here" in passed_over["users"]


@pytest.mark.parametrize(
    ("less", "wanted"),
    [
        pytest.param(NO_ADMIN, "users+namespaces", id="no admin"),
        pytest.param(ONE_USER, "users", id="no second user"),
    ],
)
def test_a_level_asked_for_by_name_is_refused_in_words_and_never_stepped_down_from(
    place: Path, less: list[str], wanted: str
) -> None:
    if not possible():
        pytest.skip("no pid namespace can be made here: this needs root and CAP_SYS_ADMIN")
    with (
        pytest.raises(InfrastructureError, match=r"isolation users.* can't be had: "),
        taken(place, programs(less), wanted),
    ):
        pass


def test_the_proof_sees_what_a_level_without_walls_lets_through(tmp_path: Path) -> None:
    settings = Settings(str(tmp_path), str(tmp_path), {"run-0": False}, client_fd=0)
    level = Level("users", ["nnp"], "open", [], landlock=0)
    ground = Ground(settings, level, {"run-0": Slot("run-0", network=False, identity=None)})
    try:
        assert why_not_proven(ground) == (
            "a stage of run could read a private file of the rig and write there"
            " and signal the spawner"
        )
    finally:
        ground.end_nursery()
    assert list(tmp_path.iterdir()) == []


def test_what_a_dead_spawner_left_has_no_say_in_the_proof(tmp_path: Path) -> None:
    settings = Settings(str(tmp_path), str(tmp_path), {"run-0": False}, client_fd=0)
    slot = Slot(
        "run-0", network=False, identity=None, quarantined="isolation: 1 processes of run survived"
    )
    ground = Ground(settings, Level("users", ["nnp"], "open", [], landlock=0), {"run-0": slot})
    assert why_not_proven(ground) is None
