"""What was acknowledged is there, whatever happened to the process or the disk."""

import errno
import os
import random
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.ledger.facts import Clock, Facts
from thermite.audit.verify import audit
from thermite.command.signing_key import SigningKey
from thermite.errors import LedgerError, LedgerUnavailableError
from thermite.ledger.append import Ledger
from thermite.ledger.replay import recorded

ROOT = Path(__file__).parents[2]
PRODUCER = [sys.executable, "-m", "tests.ledger.producer"]
FAULTS = int(os.environ.get("THERMITE_FAULTS", "4"))
"""At how many of its writes and syncs a disk fails; a long run sets it to 1000, which is all."""
SEED = int(os.environ.get("THERMITE_SEED") or datetime.now(UTC).date().toordinal())
"""Draws the writes; another one each day."""
KILLS = int(os.environ.get("THERMITE_KILLS", "6"))
A_LEDGER = 20
"""Kills of one ledger in a long run."""

COUNTER = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>
static void count(void) {
    int to = open(getenv("SYNCS"), O_WRONLY | O_APPEND | O_CREAT, 0600);
    if (to >= 0) { (void)!write(to, "x", 1); close(to); }
}
int fsync(int fd) { count(); return syscall(SYS_fsync, fd); }
int fdatasync(int fd) { count(); return syscall(SYS_fdatasync, fd); }
"""


FAULT = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>
static long calls;
__attribute__((destructor)) static void tell(void) {
    char *path = getenv("FAULT_COUNT");
    FILE *to = path ? fopen(path, "w") : 0;
    if (to) { fprintf(to, "%ld", calls); fclose(to); }
}
static int fails(void) {
    if (++calls < atol(getenv("FAULT_AT"))) return 0;
    errno = atoi(getenv("FAULT_ERRNO"));
    return 1;
}
int fsync(int fd) { return fails() ? -1 : syscall(SYS_fsync, fd); }
int fdatasync(int fd) { return fails() ? -1 : syscall(SYS_fdatasync, fd); }
ssize_t pwrite64(int fd, const void *from, size_t count, off64_t at) {
    return fails() ? -1 : syscall(SYS_pwrite64, fd, from, count, at);
}
"""
"""Fails the n-th write or sync of a process, and all after it; tells how many there were."""


def acknowledged(text: str) -> tuple[int, str]:
    """The last whole line of a producer."""
    size, head = text[: text.rindex("\n")].splitlines()[-1].split()
    return int(size), head


def test_no_acknowledged_event_is_lost_to_kill_9(path: Path, tmp_path: Path) -> None:
    chance = random.Random(7)
    told = tmp_path / "told"
    for kill in range(KILLS):
        if kill and kill % A_LEDGER == 0:
            path = path.with_name(f"ledger-{kill}.db")  # each look takes longer than the one before
        with told.open("w") as out:
            producer = subprocess.Popen(
                [*PRODUCER, str(path), "groups"], cwd=ROOT, stdout=out, stderr=subprocess.PIPE
            )
            deadline = time.monotonic() + 60
            while not told.read_text().count("\n") and time.monotonic() < deadline:
                time.sleep(0.01)
            time.sleep(chance.uniform(0, 0.3))
            producer.kill()
            errors = producer.communicate()[1]
        assert errors == b""
        size, head = acknowledged(told.read_text())
        hashes = [row.hash.hex() for row in recorded(path)]
        assert len(hashes) >= size
        assert hashes[size - 1] == head
        # Steering notes of an assignment that was never created are all an audit may mind.
        assert {one.code for one in audit(path).findings if one.severity == "finding"} <= {
            "illegal_transition"
        }


def test_each_commit_is_synced_to_the_disk(path: Path, tmp_path: Path) -> None:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("counting syncs takes a C compiler, and there is no cc here")
    source, library, counted = tmp_path / "count.c", tmp_path / "count.so", tmp_path / "syncs"
    source.write_text(COUNTER)
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source], check=True)
    environment = os.environ | {"LD_PRELOAD": str(library), "SYNCS": str(counted)}
    done = subprocess.run(
        [*PRODUCER, str(path), "synced"],
        cwd=ROOT,
        env=environment,
        check=True,
        capture_output=True,
    )
    of_each = [int(line) for line in done.stdout.splitlines()]
    assert len(of_each) == 200
    assert min(of_each) >= 1
    assert sum(of_each) <= 200 * 1.1
    assert counted.stat().st_size <= 240  # making and closing the file sync, too


@pytest.fixture(scope="module")
def fault(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("failing a write takes a C compiler, and there is no cc here")
    folder = tmp_path_factory.mktemp("fault")
    (folder / "fault.c").write_text(FAULT)
    built = folder / "fault.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", built, folder / "fault.c"], check=True)
    return built


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO], ids=["ENOSPC", "EIO"])
def test_what_was_acknowledged_outlives_a_disk_that_fails_at_any_write(
    tmp_path: Path, fault: Path, code: int
) -> None:
    disk = {"LD_PRELOAD": str(fault), "FAULT_ERRNO": str(code)}
    count = tmp_path / "count"
    whole = faulty(tmp_path / "whole", disk | {"FAULT_AT": "1000000", "FAULT_COUNT": str(count)})
    assert whole.returncode == 0
    last = int(count.read_text())
    assert last > 100
    drawn = random.Random(f"{SEED}/{code}").sample(range(1, last + 1), min(FAULTS, last))
    for at in drawn:
        folder = tmp_path / str(at)
        ended = faulty(folder, disk | {"FAULT_AT": str(at)})
        assert "Traceback" not in ended.stderr, (at, ended.stderr)
        is_whole = ended.stdout.count("\n") == 12  # it failed at the very end, when all was durable
        assert ended.returncode == 1 or is_whole, at
        assert_nothing_promised_is_lost(folder / "ledger.db", ended.stdout)


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO], ids=["ENOSPC", "EIO"])
def test_a_disk_that_refuses_when_a_ledger_is_opened_is_said_in_words(
    tmp_path: Path, fault: Path, code: int
) -> None:
    """It was a traceback: SQLite writes before it reads what the log holds."""
    whole = faulty(tmp_path)
    disk = {"LD_PRELOAD": str(fault), "FAULT_ERRNO": str(code), "FAULT_AT": "1"}
    ended = faulty(tmp_path, disk)
    assert ended.returncode == 1
    assert ended.stderr.startswith("ledger unavailable: it can't be opened, disk I/O error (")
    assert f"): look after the disk in {tmp_path}\n" in ended.stderr
    assert_nothing_promised_is_lost(tmp_path / "ledger.db", whole.stdout)


def faulty(
    folder: Path, disk: Mapping[str, str] | None = None
) -> "subprocess.CompletedProcess[str]":
    """A producer of 12 lists of 3, on such a disk."""
    folder.mkdir(exist_ok=True)
    return subprocess.run(
        [*PRODUCER, str(folder / "ledger.db"), "faulty"],
        cwd=ROOT,
        env=os.environ | (disk or {}),
        capture_output=True,
        text=True,
        check=False,
    )


def assert_nothing_promised_is_lost(path: Path, told: str) -> None:
    """What was said to be durable is there, no list in half, and the next process goes on."""
    if not path.exists():
        assert told == ""
        return
    hashes = [row.hash.hex() for row in recorded(path)]
    for size, head in (line.split() for line in told.splitlines()):
        assert hashes[int(size) - 1] == head
    assert len(hashes) % 3 == 1, "no list is there in half"
    assert faulty(path.parent).returncode == 0
    assert [row.hash.hex() for row in recorded(path)][: len(hashes)] == hashes


@pytest.mark.parametrize("seed", range(4))
def test_a_damaged_log_is_shorter_and_a_receipt_shows_it(
    path: Path, facts: Facts, rig_key: SigningKey, clock: Clock, tmp_path: Path, seed: int
) -> None:
    chance = random.Random(seed)
    ledger = Ledger.create(path, facts.opened(), rig_key, now=clock)
    for _ in range(20):
        ledger.append([facts.probe(), facts.probe()])
    note = ledger.checkpoint()
    copy = tmp_path / "copy" / "ledger.db"
    copy.parent.mkdir()
    shutil.copy(path, copy)
    log = bytearray(path.with_name("ledger.db-wal").read_bytes())
    size = ledger.size
    ledger.close()
    at = chance.randrange(len(log) // 4, 3 * len(log) // 4)
    if seed % 2:
        del log[at:]
    else:
        log[at] ^= 1 << chance.randrange(8)
    copy.with_name("ledger.db-wal").write_bytes(log)
    left = audit(copy)
    assert 0 < left.events < size
    assert "body_hash" not in {one.code for one in left.findings}
    (tmp_path / "receipt").write_text(note)
    against = audit(copy, against=[tmp_path / "receipt"])
    assert "shorter_than_checkpoint" in {one.code for one in against.findings}
    with pytest.raises(LedgerError, match=f"and a receipt names event {size}: refuse to write"):
        Ledger.open(copy, rig_key, now=clock, witnessed=size)


@pytest.fixture
def limited() -> int:
    return 1 << 20


def test_a_file_that_may_not_grow_makes_the_ledger_unavailable(path: Path, limited: int) -> None:
    ended = subprocess.run(
        [*PRODUCER, str(path), "full"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(
            resource.RLIMIT_FSIZE, (limited, resource.RLIM_INFINITY)
        ),
    )
    assert ended.stderr == ""
    assert_unavailable(ended.stdout)


def test_a_full_disk_makes_the_ledger_unavailable(tmp_path: Path) -> None:
    mounts = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "-Um", "--map-root-user"]
    if (
        shutil.which("unshare") is None
        or subprocess.run(
            [*mounts, "mount", "-t", "tmpfs", "tmpfs", str(tmp_path)],
            check=False,
            capture_output=True,
        ).returncode
    ):
        pytest.skip("a small disk takes the right to mount one, and there is none here")
    script = (
        'mount -t tmpfs -o size=2m tmpfs "$0" && head -c 1000000 /dev/zero > "$0/ballast" &&'
        ' exec "$@"'
    )
    ended = subprocess.run(
        [
            *mounts,
            "sh",
            "-c",
            script,
            str(tmp_path),
            *PRODUCER,
            str(tmp_path / "ledger.db"),
            "full",
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.stderr == ""
    assert_unavailable(ended.stdout)


def assert_unavailable(told: str) -> None:
    first, second, sizes = told.splitlines()
    assert first.startswith("ledger unavailable: ")
    assert second.startswith("ledger unavailable: ")
    _, acknowledged_size, size = sizes.split()
    assert 1 < int(acknowledged_size) <= int(size)


def test_a_ledger_whose_connection_broke_says_so_to_all(
    path: Path, facts: Facts, rig_key: SigningKey, clock: Clock
) -> None:
    ledger = Ledger.create(path, facts.opened(), rig_key, now=clock)
    ledger._writer._connection.close()
    for attempt in (ledger.append, lambda _: ledger.checkpoint()):
        with pytest.raises(LedgerUnavailableError, match="ledger unavailable: "):
            attempt([facts.steered()])
    with pytest.raises(LedgerUnavailableError):
        ledger.note_covering(1)
    ledger.close()
