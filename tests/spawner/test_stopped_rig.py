"""A rig that is stopped keeps its folder, whoever leases numbers after it.

Its harness owned its keys, repositories and ledger by a leased uid; a stage that got that uid
next owned all of it, and what a stage's user owns in shared folders is swept away.
"""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.leased import few_uids
from tests.spawner.conftest import NewRig, Runner
from tests.spawner.family import WAIT, Tree
from thermite.errors import InfrastructureError

Grow = Callable[..., Tree]
FEW = few_uids(12)
"""Enough for one rig: three for owners, nine for the killer and the stages."""


MORE = few_uids(20)
"""Enough for two rigs' owners, and for the stages of one."""


def _serve(
    users_tree: Grow, state: str = "rig", uid_range: tuple[int, int] = FEW
) -> tuple[int, int]:
    """Start and end a rig; return who owned its folder, and who fetched for it."""
    one = users_tree(WAIT, interpreter="/usr/bin/python3", state=state, uid_range=uid_range)
    one.until(lambda: bool(one.notes("harness") and one.notes("supervisor")))
    harness, supervisor = (one.notes(name)[0]["ids"][0] for name in ("harness", "supervisor"))
    one.process.kill()  # unshare takes the whole namespace with it
    one.process.wait()
    for name in ("harness", "supervisor"):
        (one.folder / name).unlink()
    return harness, supervisor


def _kept(rig: Path, owner: int) -> None:
    assert (rig / "keys/rig.key").read_text() == "secret"
    assert (rig / "ledger.db").stat().st_uid == (rig / "keys").stat().st_uid == owner
    assert (rig / "inbox/done").is_dir()


def _fill(rig: Path, owner: int) -> None:
    for name in ("keys/rig.key", "ledger.db"):
        (rig / name).write_text("secret")
        os.chown(rig / name, owner, owner)


@pytest.fixture(params=[0o755, 0o711], ids=["seen", "unseen"])
def above(request: pytest.FixtureRequest, place: Path) -> str:
    """A folder for rigs: one that users can read, or only pass through."""
    (place / "above").mkdir()
    (place / "above").chmod(request.param)
    return "above"


@pytest.mark.parametrize("leases", ["kept", "lost in a reboot"])
def test_other_rigs_stages_never_get_its_owners_uid(
    users_tree: Grow, new_rig: NewRig, place: Path, above: str, leases: str
) -> None:
    owner, fetcher = _serve(users_tree, f"{above}/rig")
    _fill(place / above / "rig", owner)
    for name in ("one", "two"):
        if leases != "kept":
            shutil.rmtree(place / "run/uids")
        with new_rig(name, uid_range=FEW) as stages:
            for slot_name in stages.slot_names:
                with stages.slot(slot_name) as slot:
                    uid = Runner(stages, slot).sh("true").isolation.uid
                    assert uid not in {owner, fetcher}
        _kept(place / above / "rig", owner)


def test_a_second_look_at_its_own_folder_gives_its_numbers_to_nobody(
    users_tree: Grow, new_rig: NewRig, place: Path
) -> None:
    """As `rig doctor` and `judge --state` do: the leases that they took back were given away."""
    owner, fetcher = _serve(users_tree)
    place.chmod(0o755)
    _fill(place / "rig", owner)
    with new_rig("rig", uid_range=FEW) as stages, stages.slot("run-0") as slot:
        assert Runner(stages, slot).sh("true").isolation.uid not in {owner, fetcher}
    _kept(place / "rig", owner)
    assert {(place / f"run/uids/{uid}").read_text().split("\n")[1] for uid in (owner, fetcher)} == {
        "thermite",
        "supervisor",
    }


def test_another_rig_has_owners_of_its_own_until_the_folder_is_gone(
    users_tree: Grow, place: Path, above: str
) -> None:
    first, other = _serve(users_tree, f"{above}/rig"), _serve(users_tree, f"{above}/other", MORE)
    assert not {*first} & {*other}
    full = users_tree(WAIT, interpreter="/usr/bin/python3", state=f"{above}/third", uid_range=FEW)
    _, said = full.process.communicate(timeout=60)
    assert b"no free uid for supervisor from %d to %d" % FEW in said
    shutil.rmtree(place / above / "rig")
    assert {*_serve(users_tree, f"{above}/third")} & {*first}


def test_it_gets_its_own_numbers_back_after_a_reboot(users_tree: Grow, place: Path) -> None:
    first, other = _serve(users_tree, "rig", MORE), _serve(users_tree, "other", MORE)
    assert not {*first} & {*other}
    shutil.rmtree(place / "run/uids")
    assert _serve(users_tree, "other", MORE) == other
    assert _serve(users_tree, "rig", MORE) == first


def test_a_number_that_owns_anything_in_a_shared_folder_is_nobodys(
    new_rig: NewRig, place: Path
) -> None:
    """As a rig's of an older release does, or of another range, or an account's that is gone."""
    place.chmod(0o755)
    (place / "rig of old/keys").mkdir(parents=True)
    numbers = range(FEW[0], FEW[1] + 1)
    os.chown(place / "rig of old/keys", numbers[0], numbers[0])
    with new_rig(uid_range=FEW) as stages:
        for name in stages.slot_names:
            with stages.slot(name) as slot:
                assert Runner(stages, slot).sh("true").isolation.uid != numbers[0]
    assert (place / "rig of old/keys").is_dir()
    for uid in numbers:
        path = place / f"left by {uid}"
        path.touch()
        os.chown(path, uid, uid)
    words = "12 of which own files in shared folders: widen THERMITE_UID_RANGE"
    with pytest.raises(InfrastructureError, match=words), new_rig("late", uid_range=FEW):
        pass
    assert all((place / f"left by {uid}").exists() for uid in numbers)


def test_only_folders_that_anybody_may_write_in_are_swept(new_rig: NewRig, place: Path) -> None:
    """A rig's folder is its harness's group's: what it holds is never a stage's leaving."""
    place.chmod(0o755)
    with new_rig() as stages, stages.slot("run-0") as slot:
        leases = (place / "run/uids").iterdir()
        (uid,) = [int(path.name) for path in leases if path.read_text().endswith("\nrun-0\n")]
        for name, mode in (("a rig", 0o1771), ("for all", 0o1777)):
            (place / name).mkdir()
            (place / name / "owned").touch()
            os.chown(place / name / "owned", uid, uid)
            os.chown(place / name, 0, uid)
            (place / name).chmod(mode)
        assert Runner(stages, slot).sh("true").isolation.uid == uid  # the first looks everywhere
    assert (place / "a rig/owned").exists()
    assert not (place / "for all/owned").exists()
