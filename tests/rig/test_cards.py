"""Judge cards: each slot of runs sees its own, nobody else's stages see any of it told."""

import fcntl
from pathlib import Path

import pytest

from tests.requirement import shows
from tests.rig.test_pinning import CARDS, tree
from thermite.errors import UsageError
from thermite.harness.local_job import local_judge
from thermite.rig.device.cuda import Card, judge_cards
from thermite.rig.pinning import timed_as
from thermite.rig.start import spawner
from thermite.schema.rig_settings import RigSettings, Slots
from thermite.schema.stage import Limits

UUID = "GPU-0c3ec7b4-3f6d-4d0e-9d0d-1f0a4f3f4b5c"
ONE, OTHER = "0000:00:06.0", "0000:81:00.0"


@pytest.fixture
def devices(tmp_path: Path) -> Path:
    return tree(tmp_path / "devices", CARDS)


def test_a_card_is_shown_by_its_uuid_or_else_by_its_number(devices: Path, tmp_path: Path) -> None:
    told = tmp_path / "gpus"
    (told / OTHER).mkdir(parents=True)
    (told / OTHER / "information").write_text(f"Model: \t\t H\nGPU UUID: \t {UUID}\nIRQ: 9\n")
    assert judge_cards([f"0000{OTHER}".upper(), ONE], devices, told) == [
        Card(1, {"CUDA_VISIBLE_DEVICES": UUID}),
        Card(0, {"CUDA_VISIBLE_DEVICES": "0", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}),
    ]


@pytest.mark.parametrize("card", ["0000:99:00.0", "0000:00:02.0", "0000:00:05.0", "gpu0"])
def test_what_is_no_card_is_refused_with_those_that_are(devices: Path, card: str) -> None:
    with pytest.raises(UsageError, match=f"'{card}', and the cards here are {ONE}, {OTHER}"):
        judge_cards([card], devices)


def test_more_slots_than_cards_are_refused() -> None:
    settings = RigSettings(target="cuda-gpu", cards=[ONE], slots=Slots(runs=2), cpus=[0])
    with pytest.raises(UsageError, match="2 slots of runs and 1 cards: each slot has a card"):
        timed_as(settings)


def test_each_slot_of_runs_has_its_card_and_its_clock(tmp_path: Path) -> None:
    # In a domain of PCI that no machine of ours has, whose driver would tell their UUIDs.
    one, other = ONE.replace("0000:", "00fe:"), OTHER.replace("0000:", "00fe:")
    devices = tree(tmp_path / "devices", {one: CARDS[ONE], other: CARDS[OTHER]})
    settings = RigSettings(target="cuda-gpu", cards=[other, one], slots=Slots(runs=2), cpus=[0])
    told = timed_as(settings, devices=devices)
    assert told["cards"] == [1, 0]
    assert [told["slot_env"][f"run-{i}"]["CUDA_VISIBLE_DEVICES"] for i in (0, 1)] == ["1", "0"]


def test_a_selftest_on_a_rigs_settings_is_of_the_rigs_cards(tmp_path: Path) -> None:
    """It was timed on whatever card came first, with nobody kept from its clock."""
    settings = RigSettings(target="cuda-gpu", cards=["0000:99:00.0"], cpus=[0])
    with (
        pytest.raises(UsageError, match=r"'0000:99:00\.0', and the cards here are"),
        local_judge(tmp_path / "rig", tmp_path, "kit", settings),
    ):
        pass


@shows("K-103")
def test_only_the_runs_of_a_card_see_it_and_its_clock_is_held_for_a_block(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    locks = tmp_path / "thermite"
    with spawner(
        tmp_path / "rig",
        isolation="none",
        run_dir=locks,
        slot_env={"run-0": {"CUDA_VISIBLE_DEVICES": UUID}},
        cards=[3],
    ) as stages:
        seen = {}
        for name in ("builder-0", "run-0", "worker-0"):
            with stages.slot(name) as slot:
                env = {"PATH": stages.path_variable, "CUDA_VISIBLE_DEVICES": "all"}
                given = env if name == "run-0" else {"PATH": stages.path_variable}
                seen[name] = slot.run(["env"], env=given, limits=Limits(timeout_s=20)).stdout
        assert f"CUDA_VISIBLE_DEVICES={UUID}\n".encode() in seen["run-0"]
        assert all(b"CUDA" not in seen[name] for name in ("builder-0", "worker-0"))
        with stages.block():
            assert is_held(locks / "clock-3.lock")
        assert not is_held(locks / "clock-3.lock")


def is_held(lock: Path) -> bool:
    with lock.open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False
