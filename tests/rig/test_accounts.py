"""Accounts made and taken away again, on copies of the system's files: never the real ones."""

import fcntl
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from thermite.errors import UsageError
from thermite.rig import accounts
from thermite.rig.accounts import (
    HOME,
    LEASES,
    MARK,
    SHELL,
    account_names,
    in_use,
    make_accounts,
    numbers_in_use,
    ours,
    remove_accounts,
    uid_range,
)
from thermite.schema.rig_settings import Slots
from thermite.spawner import settings, uids

FILES = ("passwd", "group", "shadow", "gshadow")
ORDER_OF_REMOVAL = ("gshadow", "shadow", "group", "passwd")
NAMES = account_names(Slots())
RANGE = (58_000, 58_999)
BEFORE = {
    "passwd": b"root:x:0:0:root:/root:/bin/bash\n"
    b"ann:x:1000:1000:Ann \xff\xe2\x80\xa8run:/home/ann:/bin/sh\n",
    "group": b"root:x:0:\nann:x:1000:\nstaff:x:50:ann\n",
    "shadow": b"root:*:19000:0:99999:7:::\nann:$y$secret:19000:0:99999:7:::\n",
    "gshadow": b"root:*::\nann:!::\nstaff:*::ann\n",
}


@pytest.fixture
def etc(tmp_path: Path) -> Path:
    folder = tmp_path / "etc"
    folder.mkdir()
    fill(folder, BEFORE)
    return folder


def fill(etc: Path, contents: dict[str, bytes]) -> None:
    for name, content in contents.items():
        (etc / name).write_bytes(content)
        (etc / name).chmod(0o640 if name.endswith("shadow") else 0o644)


def found(etc: Path) -> dict[str, bytes]:
    return {name: (etc / name).read_bytes() for name in FILES}


def test_the_names_are_the_documents_words() -> None:
    assert [
        *("thermite", "supervisor", "reaper", "check", "import", "thermite-drop"),
        *("builder", "run", "gateway", "worker-0"),
    ] == NAMES
    assert account_names(Slots(builders=1, runs=2, workers=0, gateways=0))[-2:] == ["run", "run-1"]


def test_the_spawner_knows_them_by_the_same_mark_numbers_and_leases(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It imports nothing of ours, so that each says it for itself."""
    monkeypatch.delenv("THERMITE_UID_RANGE", raising=False)
    assert uids._MADE == (MARK, HOME, SHELL)
    assert settings.DEFAULT_UID_RANGE == RANGE == uid_range()
    assert Path(settings.DEFAULT_RUN_DIR) / "uids" == LEASES


@pytest.mark.parametrize("numbers", [range(58_000, 59_000), range(7, 9), range(100, 109)], ids=str)
def test_a_number_that_owns_a_rigs_folder_never_becomes_a_stages(numbers: range) -> None:
    assert uids.OWNERS == accounts.OWNERS
    owners, others = (accounts._part(numbers, is_owner=one) for one in (True, False))
    assert sorted([*owners, *others]) == list(numbers)
    for name in NAMES:
        assert uids.numbers_for(name, numbers) == (owners if name in uids.OWNERS else others)


def test_each_is_a_user_and_a_group_that_nobody_can_become(etc: Path) -> None:
    assert make_accounts(NAMES, RANGE, {58_001}, etc) == NAMES
    numbers = [58_999, 58_998, 58_000, *range(58_002, 58_009)]
    assert ours(etc) == dict(zip(NAMES, numbers, strict=True))
    after = {name: (etc / name).read_text("latin-1").splitlines() for name in FILES}
    assert "run:x:58006:58006:thermite rig:/nonexistent:/usr/sbin/nologin" in after["passwd"]
    assert "run:x:58006:" in after["group"]
    assert "run:!:::::::" in after["shadow"]
    assert "run:!::" in after["gshadow"]
    assert all(found(etc)[name].startswith(BEFORE[name]) for name in FILES)
    assert (etc / "shadow").stat().st_mode & 0o777 == 0o640


def test_the_next_person_gets_a_number_that_no_rig_leases(etc: Path) -> None:
    """useradd gives the number after the highest; it was that of another rig's harness."""
    make_accounts(NAMES, RANGE, (), etc)
    assert max(ours(etc).values()) + 1 > RANGE[1]


def test_what_was_made_is_removed_and_nothing_else(etc: Path) -> None:
    make_accounts(NAMES, RANGE, (), etc)
    assert remove_accounts(etc) == NAMES
    assert found(etc) == BEFORE
    assert {path.name for path in etc.iterdir()} == {*FILES, ".pwd.lock"}
    assert remove_accounts(etc) == []


def test_a_second_call_makes_what_is_missing(etc: Path) -> None:
    make_accounts(NAMES[:4], RANGE, (), etc)
    once = found(etc)
    assert make_accounts(NAMES[:4], RANGE, (), etc) == []
    assert found(etc) == once
    assert make_accounts(NAMES, RANGE, (), etc) == NAMES[4:]


@pytest.mark.parametrize("left", range(5))
@pytest.mark.parametrize("half_written", [False, True], ids=["between", "within"])
def test_a_call_that_was_killed_anywhere_is_finished_or_undone_by_the_next(
    etc: Path, left: int, *, half_written: bool
) -> None:
    """Each file is replaced by one rename, so these are all the states that a kill can leave."""
    make_accounts(NAMES, RANGE, (), etc)
    whole = found(etc)
    for order in (FILES, tuple(reversed(ORDER_OF_REMOVAL))):
        state = {name: whole[name] if name in order[:left] else BEFORE[name] for name in FILES}
        for then, wanted in ((make, whole), (remove_accounts, BEFORE)):
            fill(etc, state)
            if half_written and left < len(order):
                (etc / f"{order[left]}.thermite-new").write_bytes(b"half a li")
            then(etc)
            assert found(etc) == wanted
            assert not list(etc.glob("*thermite-new"))


def make(etc: Path) -> None:
    make_accounts(NAMES, RANGE, (), etc)


CHURN = """
import sys
from pathlib import Path
from thermite.rig.accounts import account_names, make_accounts, remove_accounts
from thermite.schema.rig_settings import Slots
etc, names = Path(sys.argv[1]), account_names(Slots())
print(flush=True)
while True:
    make_accounts(names, (58000, 58999), (), etc)
    remove_accounts(etc)
"""


def test_a_real_kill_leaves_what_the_next_call_mends(etc: Path) -> None:
    for moment_ms in (1, 7, 12):
        with subprocess.Popen([sys.executable, "-c", CHURN, etc], stdout=subprocess.PIPE) as child:
            assert child.stdout is not None
            child.stdout.readline()
            signal.sigtimedwait([signal.SIGUSR2], moment_ms / 1000)
            child.kill()
        make(etc)
        assert list(ours(etc)) == NAMES
        remove_accounts(etc)
        assert found(etc) == BEFORE


@pytest.mark.parametrize(
    ("file", "line"),
    [
        pytest.param("passwd", "run:x:1001:1001:thermite rig:/home/run:/bin/sh", id="a person"),
        pytest.param("group", "builder:x:200:ann", id="a group"),
        pytest.param("shadow", "check:$y$old:19000::::::", id="an old password"),
        pytest.param("gshadow", "thermite-drop:!::", id="an old group"),
    ],
)
def test_a_name_that_is_somebody_elses_is_refused_and_nothing_is_made(
    etc: Path, file: str, line: str
) -> None:
    with (etc / file).open("a") as opened:
        opened.write(f"{line}\n")
    before = found(etc)
    name = line.partition(":")[0]
    with pytest.raises(UsageError, match=f"not a rig's: {name} in .*{file}; nothing was made"):
        make(etc)
    assert found(etc) == before
    assert remove_accounts(etc) == []
    assert found(etc) == before


def test_too_few_numbers_are_refused_before_anything_is_made(etc: Path) -> None:
    with pytest.raises(UsageError, match="only 3 of 10 numbers from 58000 to 58002 are free"):
        make_accounts(NAMES, (58_000, 58_002), (), etc)
    assert found(etc) == BEFORE


def test_numbers_that_somebody_has_are_passed_over(etc: Path) -> None:
    with (etc / "group").open("a") as opened:
        opened.write("lab:x:58000:\n")
    make_accounts(NAMES, RANGE, {58_001}, etc)
    assert min(ours(etc).values()) == 58_002


def test_a_system_without_shadow_files_gets_none(etc: Path) -> None:
    for name in ("shadow", "gshadow"):
        (etc / name).unlink()
    make(etc)
    remove_accounts(etc)
    assert {path.name for path in etc.iterdir()} == {"passwd", "group", ".pwd.lock"}


def test_who_changes_accounts_now_is_not_disturbed(etc: Path) -> None:
    hold = (
        "import fcntl, sys\n"
        "file = open(sys.argv[1], 'w')\n"
        "fcntl.lockf(file, fcntl.LOCK_EX)\n"
        "print(flush=True)\n"
        "sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", hold, etc / ".pwd.lock"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as other:
        assert other.stdout is not None
        other.stdout.readline()
        with pytest.raises(UsageError, match="is held: somebody changes accounts now"):
            make(etc)
        other.communicate()
    assert found(etc) == BEFORE


def test_an_account_is_in_use_while_a_rig_holds_its_lease(etc: Path, tmp_path: Path) -> None:
    make_accounts(NAMES, (57_000, 57_099), (), etc)  # no rig of this machine has these
    leases = tmp_path / "uids"
    leases.mkdir()
    for name in ("run", "check"):
        (leases / str(ours(etc)[name])).touch()
    with (leases / str(ours(etc)["run"])).open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert in_use(etc, leases) == ["run"]
        assert ours(etc)["run"] in numbers_in_use(leases)
        assert ours(etc)["check"] not in numbers_in_use(leases)
    assert in_use(etc, leases) == []
