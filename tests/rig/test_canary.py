"""The canaries find what is closed, and what is not."""

import os
from pathlib import Path

import pytest

from tests.namespaced import Namespace, possible
from tests.requirement import shows
from thermite.rig.canary import probe
from thermite.rig.stages import Stages
from thermite.rig.start import spawner
from thermite.schema.event import IsolationProbe

NETWORK = {"open tcp socket", "open udp socket"}


@pytest.fixture
def private(tmp_path: Path) -> dict[str, Path]:
    """Files of a rig that no stage may read."""
    state = tmp_path / "rig"
    files = {"ledger": state / "ledger.db", "keys": state / "keys/rig.pem", "kit": state / "kit"}
    for path in files.values():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("4711")
        path.chmod(0o600)
    return files


def _probed(stages: Stages, private: dict[str, Path]) -> IsolationProbe:
    beside = private["ledger"].parent / "beside"
    found = probe(stages, private, beside, os.getpid())
    assert not beside.exists()
    return found


@shows("K-002")
def test_landlock_keeps_stages_from_ledger_keys_and_kits_at_level_none(
    private: dict[str, Path],
) -> None:
    with spawner(
        private["ledger"].parent, isolation="none", slots={"run-0": False, "worker-0": False}
    ) as stages:
        found = _probed(stages, private)
    if not any(one.startswith("landlock") for one in found.features):
        pytest.skip("this kernel has no Landlock")
    assert found.level == "none"
    assert {name.partition(": ")[0] for name in found.canaries} == {"run-0", "worker-0"}
    assert set(found.canaries.values()) == {"blocked"}, found.canaries
    assert {"run-0: read keys", "run-0: read ledger", "worker-0: read kit"} <= set(found.canaries)


@shows("K-002", "K-109")
def test_users_keep_stages_from_ledger_keys_and_kits(private: dict[str, Path]) -> None:
    if not possible():
        pytest.skip("no pid namespace can be made here: this needs root and CAP_SYS_ADMIN")
    with (
        Namespace() as ns,
        spawner(private["ledger"].parent, isolation="users", within=ns.prefix) as stages,
    ):
        found = _probed(stages, private)
    assert found.level == "users"
    assert set(found.canaries.values()) == {"blocked"}, found.canaries


def test_a_slot_with_the_network_is_found_to_have_it(private: dict[str, Path]) -> None:
    with spawner(private["ledger"].parent, isolation="none", slots={"worker-0": True}) as stages:
        found = _probed(stages, private)
    open_ones = {name.partition(": ")[2] for name, one in found.canaries.items() if one == "open"}
    assert open_ones == NETWORK
    assert "network" in found.gaps


def test_without_an_interpreter_nothing_is_proven(private: dict[str, Path], tmp_path: Path) -> None:
    with spawner(private["ledger"].parent, isolation="none", stage_path=str(tmp_path)) as stages:
        found = _probed(stages, private)
    assert found.canaries["run-0: read anything"].startswith("unknown: cannot execute python3")


def test_the_record_names_the_harness(private: dict[str, Path]) -> None:
    with spawner(private["ledger"].parent, isolation="none") as stages:
        assert stages.isolation.uid == os.getuid()
        assert stages.isolation.proof is None
