"""Where timed runs are pinned: near the card by default, elsewhere when somebody says so.

The tree is a copy of what a machine with a card shows, names and contents.
"""

import os
from pathlib import Path

import pytest

from tests.requirement import shows
from thermite.errors import UsageError
from thermite.rig.pinning import timed_cpus
from thermite.rig.start import spawner
from thermite.schema.rig_settings import RigSettings
from thermite.schema.stage import Limits

EIGHT = frozenset(range(8))
CARDS = {
    "0000:00:06.0": ("0x10de", "0x030200", "0-3"),
    "0000:81:00.0": ("0x10de", "0x030000", "2-5,7"),
    "0000:00:05.0": ("0x10de", "0x040300", "0"),  # a card's sound
    "0000:00:02.0": ("0x1b36", "0x030000", "1"),  # another vendor's display
}


def tree(folder: Path, cards: dict[str, tuple[str, str, str]]) -> Path:
    for address, contents in cards.items():
        (folder / address).mkdir(parents=True)
        for name, text in zip(("vendor", "class", "local_cpulist"), contents, strict=True):
            (folder / address / name).write_text(f"{text}\n")
    return folder


@pytest.mark.parametrize(
    ("settings", "variable", "pinned"),
    [
        pytest.param({"cards": ["0000:00:06.0"]}, "", [0, 1, 2, 3], id="near its card"),
        pytest.param({"cards": ["00000000:81:00.0"]}, "", [2, 3, 4, 5, 7], id="as nvidia-smi has"),
        pytest.param({}, "", [2, 3], id="near all cards"),
        pytest.param({"cpus": [6]}, "", [6], id="as rig.toml says"),
        pytest.param({"cpus": [6]}, "5", None, id="as the variable says"),
        pytest.param({"target": "cpu"}, "", None, id="no card to be near"),
    ],
)
@shows("K-104")
def test_timed_runs_are_pinned_near_their_card_unless_told(
    tmp_path: Path, settings: dict[str, object], variable: str, pinned: list[int] | None
) -> None:
    given = RigSettings(**({"target": "cuda-gpu"} | settings))  # type: ignore[arg-type]
    found = timed_cpus(
        given,
        environment={"THERMITE_RUN_CPUS": variable},
        allowed=EIGHT,
        devices=tree(tmp_path / "devices", CARDS),
    )
    assert found == pinned


@pytest.mark.parametrize(
    ("told", "allowed", "pinned"),
    [
        pytest.param("0-7", EIGHT, [1, 2, 3, 4, 5, 6, 7], id="the rig keeps one"),
        pytest.param("0", frozenset({0}), [0], id="but not the only one"),
        pytest.param("0-63", frozenset({4, 5}), [5], id="of those that may be used"),
        pytest.param("", EIGHT, None, id="the kernel does not tell"),
        pytest.param("ffff", EIGHT, None, id="another form"),
    ],
)
def test_what_the_kernel_says_is_taken_as_far_as_it_goes(
    tmp_path: Path, told: str, allowed: frozenset[int], pinned: list[int] | None
) -> None:
    devices = tree(tmp_path / "devices", {"0000:00:06.0": ("0x10de", "0x030200", told)})
    settings = RigSettings(target="cuda-gpu")
    assert timed_cpus(settings, environment={}, allowed=allowed, devices=devices) == pinned


@pytest.mark.parametrize(
    ("cards", "allowed", "says"),
    [
        (["0"], EIGHT, "names '0', and the cards here are 0000:00:06.0, 0000:81:00.0"),
        (["0000:99:00.0"], EIGHT, "names '0000:99:00.0'"),
        (["../../etc"], EIGHT, "names '../../etc'"),
        (["0000:00:06.0"], frozenset({9}), "are [0, 1, 2, 3], and this process may use [9]"),
    ],
)
def test_a_card_that_is_not_there_and_cpus_that_may_not_be_used_are_named(
    tmp_path: Path, cards: list[str], allowed: frozenset[int], says: str
) -> None:
    settings = RigSettings(target="cuda-gpu", cards=cards)
    devices = tree(tmp_path / "devices", CARDS)
    with pytest.raises(UsageError) as found:
        timed_cpus(settings, environment={}, allowed=allowed, devices=devices)
    assert says in str(found.value)


@shows("K-104")
def test_a_timed_run_of_a_rig_with_a_card_stays_near_it(tmp_path: Path) -> None:
    near = max(os.sched_getaffinity(0))
    devices = tree(tmp_path / "devices", {"0000:00:06.0": ("0x10de", "0x030200", str(near))})
    pinned = timed_cpus(RigSettings(target="cuda-gpu"), environment={}, devices=devices)
    with (
        spawner(tmp_path / "rig", isolation="none", run_cpus=pinned) as rig,
        rig.slot("run-0") as slot,
    ):
        argv = ["/bin/sh", "-c", "grep Cpus_allowed_list /proc/self/status"]
        done = slot.run(argv, env={"PATH": rig.path_variable}, limits=Limits(), timed=True)
    assert done.stdout.decode().split() == ["Cpus_allowed_list:", str(near)]
