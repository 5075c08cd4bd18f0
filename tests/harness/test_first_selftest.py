"""The first campaign after a reboot or a change of kernel or driver begins with a full test."""

import dataclasses
from pathlib import Path

import pytest

from tests.harness.ordered import BASE, Rig
from tests.simulated_campaign import Home, Life
from thermite.campaign.fold import fold
from thermite.campaign.state import State
from thermite.errors import UsageError
from thermite.harness import clock
from thermite.harness.rig import SELFTEST, selftest_mode
from thermite.judge.job.selftest import Mode
from thermite.ledger.replay import recorded
from thermite.rig.toolchain import kernel_and_driver
from thermite.schema import event as e
from thermite.schema.rig_settings import RigSettings

ONE = {"a": {"ms": 39}}


def asking_for(life: Life, mode: Mode) -> Life:
    life.bench = dataclasses.replace(life.bench, at_first=mode)
    return life


def selftests(home: Home) -> list[e.RigSelftest]:
    told = [row.event.data for row in recorded(home.rig.ledger)]
    return [data for data in told if isinstance(data, e.RigSelftest)]


def known(home: Home) -> State:
    state = State()
    for row in recorded(home.rig.ledger):
        fold(state, row.seq, row.event)
    return state


def test_the_first_campaign_begins_with_a_full_selftest(tmp_path: Path) -> None:
    home = Home(tmp_path, BASE, ONE)
    assert asking_for(Life(home), "full").run()
    (found,) = selftests(home)
    assert (found.mode, len(found.blocks), found.insensitive) == ("full", 40, False)
    assert found.sees is not None
    assert found.runs_on == kernel_and_driver()
    state, here = known(home), (clock.boot_id(), kernel_and_driver())
    assert state.is_known_as(*here)
    assert not state.is_known_as("another boot", here[1])
    assert not state.is_known_as(here[0], "Linux 9; another driver")


def test_a_rig_that_is_known_since_its_boot_begins_with_a_short_one(tmp_path: Path) -> None:
    home = Home(tmp_path, BASE, ONE)
    first = asking_for(Life(home), "full")
    first.run(die_at=3)  # the lane is open, the selftest is recorded, an attempt begins
    assert [one.mode for one in selftests(home)] == ["full"]
    again = asking_for(Life(home), "full")
    again.assignment.selftested = False  # as the next campaign's is not
    assert again.run()
    assert [one.mode for one in selftests(home)] == ["full", "short"]


def test_the_first_campaign_after_a_reboot_begins_with_a_full_one_again(tmp_path: Path) -> None:
    home = Home(tmp_path, BASE, ONE)
    asking_for(Life(home), "full").run(die_at=3)
    again = asking_for(Life(home), "full")
    again.assignment.selftested = False  # as the next campaign's is not
    again.book.state.full_selftest_boot = "the boot before"
    assert again.run()
    assert [one.mode for one in selftests(home)] == ["full", "full"]


def test_a_rig_never_seen_whole_is_not_known() -> None:
    assert not State().is_known_as("boot", "kernel")


def test_a_stop_does_not_wait_for_a_full_selftest(tmp_path: Path) -> None:
    home = Home(tmp_path, BASE, ONE)
    rig = Rig(home)
    asking_for(rig.life, "full")

    def stop(_: object) -> None:
        if len(rig.life.stages.ran) == 40:
            rig.order("stop_campaign", now=True)

    rig.life.stages.watch = stop
    assert rig.life.run()
    assert selftests(home) == []
    assert rig.life.assignment.end_reason == "stopped"
    assert len(rig.life.stages.ran) < 60


@pytest.mark.parametrize(
    ("said", "asked", "mode"),
    [
        pytest.param("", "full", "full", id="rig.toml"),
        pytest.param("short", "full", "short", id="the variable goes before it"),
        pytest.param("full", "short", "full", id="either way"),
    ],
)
def test_the_owner_says_which(
    monkeypatch: pytest.MonkeyPatch, said: str, asked: Mode, mode: Mode
) -> None:
    monkeypatch.setenv(SELFTEST, said)
    assert selftest_mode(RigSettings(selftest=asked)) == mode


def test_a_selftest_of_no_kind_is_refused_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SELFTEST, "long")
    with pytest.raises(UsageError, match="THERMITE_SELFTEST is 'long': use full or short"):
        selftest_mode(RigSettings())
