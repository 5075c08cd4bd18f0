"""The uids that a spawner leases: its own alone, emptied after a dead one, or refused in words.

Everything here can reach a kill(-1) and runs in a pid namespace of its own; the fixture also
holds that its bystanders are alive at the end of each test.
"""

import contextlib
import shutil
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.leased import few_uids
from tests.namespaced import OTHER_SLOT, Namespace, possible
from tests.spawner.conftest import NewRig, Runner
from thermite.errors import InfrastructureError
from thermite.rig.start import FOLDER, spawner
from thermite.schema.stage import Entry


def test_two_rigs_lease_different_uids_and_end_each_others_nothing(new_rig: NewRig) -> None:
    with new_rig("one") as first, new_rig("two") as second:
        with first.slot("run-0") as one, second.slot("run-0") as two:
            uids = {
                Runner(first, one).sh("true").isolation.uid,
                Runner(second, two).sh("true").isolation.uid,
            }
        assert len(uids) == 2


def test_a_second_spawner_on_one_folder_is_refused(new_rig: NewRig) -> None:
    with (
        new_rig(),
        pytest.raises(InfrastructureError, match="another rig runs in"),
        new_rig(),
    ):
        pass


def _spawner() -> psutil.Process:
    """The newest spawner: the namespace's first process has started it, and bystanders.

    Others may live for other tests, a whole session long, and what one has forked has its
    command line.
    """
    found = [
        one
        for above in psutil.Process().children()
        for one in above.children()
        if "namespaced.py" in " ".join(one.cmdline())
    ]
    first = max(found, key=psutil.Process.create_time)
    (spawner,) = [one for one in first.children() if one.cmdline()[-2:-1] == [str(FOLDER)]]
    return spawner


def test_a_dead_spawners_uids_are_emptied_and_used_again(new_rig: NewRig, place: Path) -> None:
    uid = 0
    with (
        contextlib.suppress(InfrastructureError),
        new_rig() as stages,
        stages.slot("run-0") as slot,
    ):
        uid = Runner(stages, slot).sh("true").isolation.uid
        slot.place([Entry(path=b"left", kind="file", data=b"1")])
        _spawner().kill()
    assert list((place / "rig/stages").iterdir())
    with new_rig() as again, again.slot("run-0") as slot:
        assert Runner(again, slot).sh("true").isolation.uid == uid
        assert list((place / "rig/stages").iterdir()) == [slot.folder]


def test_users_that_cannot_reach_the_stage_root_get_another_or_words(
    new_rig: NewRig, place: Path
) -> None:
    closed = place / "closed"
    closed.mkdir(0o700)
    with new_rig("closed/rig") as stages, stages.slot("run-0") as slot:
        assert slot.folder.parent.parent == Path("/var/tmp")
        assert Runner(stages, slot).sh("pwd").stdout.decode().strip() == str(slot.folder)
    assert not slot.folder.parent.exists()
    words = f"below {closed} with mode 0700; choose --state under /var/lib or chmod o\\+x {closed}"
    with (
        pytest.raises(InfrastructureError, match=words),
        new_rig("closed/rig", fallback_root=None),
    ):
        pass


def test_the_stage_root_that_a_dead_spawner_made_elsewhere_is_removed(
    new_rig: NewRig, place: Path
) -> None:
    """Each death left one in /var/tmp, with whatever its stages had in it."""
    (place / "closed").mkdir(0o700)
    note = place / "closed/rig/stages/.elsewhere"
    with (
        contextlib.suppress(InfrastructureError),
        new_rig("closed/rig") as stages,
        stages.slot("run-0") as slot,
    ):
        slot.place([Entry(path=b"left", kind="file", data=b"1")])
        _spawner().kill()
    left = slot.folder.parent
    assert list(left.iterdir())
    not_ours, foreign = Path(f"/var/tmp/thermite-{'0' * 16}"), place / "foreign"
    foreign.mkdir()
    (foreign / "kept").mkdir()
    not_ours.symlink_to(foreign)
    try:
        note.write_text(f"{note.read_text()}{not_ours}\n{foreign}\n")
        with new_rig("closed/rig") as again, again.slot("run-0") as other:
            assert not left.exists()
            assert other.folder.parent != left
            assert (foreign / "kept").exists()
    finally:
        not_ours.unlink()
    assert not note.exists()


def test_too_narrow_a_range_of_uids_is_said(new_rig: NewRig) -> None:
    with (
        pytest.raises(InfrastructureError, match="widen THERMITE_UID_RANGE"),
        new_rig(uid_range=few_uids(2)),
    ):
        pass


def _numbers(count: int) -> range:
    low, high = few_uids(count)
    return range(low, high + 1)


def test_numbers_of_dead_rigs_are_leased_when_no_fresh_one_is_left(
    new_rig: NewRig, place: Path
) -> None:
    """They are what keeps a number back that may own files; a rig that ends gives them up."""
    leases, numbers = place / "run/uids", _numbers(10)
    leases.mkdir(parents=True, mode=0o700)
    for uid in numbers:
        (leases / str(uid)).write_text("/gone/rig\nrun-0\n")
    with new_rig(uid_range=(numbers[0], numbers[-1])) as stages, stages.slot("run-0") as slot:
        assert Runner(stages, slot).sh("true").isolation.uid in numbers
        taken = [path for path in leases.iterdir() if str(place / "rig") in path.read_text()]
    assert {int(path.name) for path in leases.iterdir()} == {*numbers} - {
        int(path.name) for path in taken
    }
    assert len(taken) == len(stages.slot_names) + 1  # and the killer's


def test_a_uid_that_somebody_lives_under_is_passed_over(new_rig: NewRig) -> None:
    with new_rig(uid_range=(OTHER_SLOT, OTHER_SLOT + 9)) as stages:
        for name in ("run-0", "builder-0", "check", "import", "worker-0"):
            with stages.slot(name) as slot:
                assert Runner(stages, slot).sh("true").isolation.uid != OTHER_SLOT


def test_what_lives_under_a_uid_that_a_dead_spawner_left_is_ended(place: Path) -> None:
    if not possible():
        pytest.skip("no pid namespace can be made here: this needs root and CAP_SYS_ADMIN")
    leases = place / "run/uids"
    leases.mkdir(parents=True, mode=0o700)
    (leases / str(OTHER_SLOT)).write_text(f"{place / 'rig'}\nrun-0\n")
    with (
        Namespace(ended=OTHER_SLOT) as ns,
        spawner(
            place / "rig",
            within=ns.prefix,
            isolation="users",
            run_dir=place / "run",
        ) as stages,
    ):
        with stages.slot("run-0") as slot:
            assert Runner(stages, slot).sh("true").isolation.uid == OTHER_SLOT
        assert ns.bystanders() == 2  # the one that had this uid is gone, the others are not


@pytest.mark.parametrize("slot", ["thermite", "supervisor"])
def test_the_number_that_owns_an_ended_rigs_files_is_nobody_elses_next(
    new_rig: NewRig, place: Path, slot: str
) -> None:
    """Its rig takes it back; a candidate under it could read the key and write the ledger."""
    leases, numbers = place / "run/uids", _numbers(10)
    leases.mkdir(parents=True, mode=0o700)
    (place / "ended").mkdir()
    for uid in numbers:
        (leases / str(uid)).write_text(f"{place}/ended\n{slot}\n")
    with (
        pytest.raises(InfrastructureError, match="widen THERMITE_UID_RANGE"),
        new_rig(uid_range=(numbers[0], numbers[-1])),
    ):
        pass
    (place / "ended").rmdir()
    with new_rig(uid_range=(numbers[0], numbers[-1])):
        pass


PERSONS = """
import sys
from thermite.spawner.uids import Leases
leases = Leases(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[3]) + 99)
leases.take(["thermite", "run-0"])
print(leases.held["run-0"], leases.left_behind)
"""


@pytest.mark.parametrize(
    ("mark", "is_kept"),
    [
        pytest.param("Ann:/home/ann:/bin/sh", False, id="a person's"),
        pytest.param("thermite rig:/nonexistent:/usr/sbin/nologin", True, id="a rig's"),
    ],
)
def test_a_leased_number_that_became_a_persons_is_neither_leased_nor_emptied(
    place: Path, mark: str, *, is_kept: bool
) -> None:
    """useradd knows no leases: the next start ended all that the new person ran."""
    if not possible():
        pytest.skip("no namespace can be made here: this needs root and CAP_SYS_ADMIN")
    (leases := place / "run/uids").mkdir(parents=True, mode=0o700)
    low, _ = few_uids(1)
    (leases / str(low)).write_text(f"{place}/rig\nrun-0\n")
    (passwd := place / "passwd").write_text(
        f"root:x:0:0::/root:/bin/sh\nann:x:{low}:{low}:{mark}\n"
    )
    bind = 'mount --bind "$0" /etc/passwd && exec "$@"'
    done = subprocess.run(
        [
            *("unshare", "-m", "/bin/sh", "-c", bind, passwd),
            *(sys.executable, "-c", PERSONS, leases, place / "rig", str(low)),
        ],
        check=True,
        capture_output=True,
        text=True,
    )
    assert (done.stdout == f"{low} [{low}]\n") == is_kept
    assert (leases / str(low)).exists() == is_kept


def test_a_lease_that_is_thrown_away_while_its_rig_runs_is_made_again(
    new_rig: NewRig, place: Path
) -> None:
    """Else another rig leased the number, and the killer of each ended the other's stages."""
    with new_rig("one") as first, first.slot("run-0") as one:
        shutil.rmtree(place / "run/uids")
        uid = Runner(first, one).sh("true").isolation.uid
        assert (place / f"run/uids/{uid}").read_text() == f"{place / 'one'}\nrun-0\n"
        with new_rig("two") as second, second.slot("run-0") as two:
            assert Runner(second, two).sh("true").isolation.uid != uid


def test_a_slot_whose_number_was_leased_to_another_rig_is_closed(
    new_rig: NewRig, place: Path
) -> None:
    """And the end of the one takes no lease of the other away."""
    with contextlib.ExitStack() as longer, contextlib.ExitStack() as shorter:
        first = shorter.enter_context(new_rig("one"))
        shutil.rmtree(place / "run/uids")
        second = longer.enter_context(new_rig("two"))
        with (
            pytest.raises(InfrastructureError, match="has been leased to another rig"),
            first.slot("run-0") as one,  # closed, it is not swept either
        ):
            Runner(first, one).sh("true")
        with second.slot("run-0") as two:
            uid = Runner(second, two).sh("true").isolation.uid
        shorter.close()
        assert (place / f"run/uids/{uid}").read_text() == f"{place / 'two'}\nrun-0\n"
