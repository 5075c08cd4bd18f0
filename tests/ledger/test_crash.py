"""What was acknowledged is there, whatever happened to the process or the disk."""

import errno
import os
import random
import resource
import shutil
import subprocess
import sys
import time
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
FAULTS = int(os.environ.get("THERMITE_FAULTS", "1"))
"""How many more places in the row; a long run sets it to 40."""
KILLS = int(os.environ.get("THERMITE_KILLS", "6"))

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
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>
static long calls;
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
"""Fails the n-th write or sync of a process, and all after it."""


def acknowledged(text: str) -> tuple[int, str]:
    """The last whole line of a producer."""
    size, head = text[: text.rindex("\n")].splitlines()[-1].split()
    return int(size), head


def test_no_acknowledged_event_is_lost_to_kill_9(path: Path, tmp_path: Path) -> None:
    chance = random.Random(7)
    told = tmp_path / "told"
    for _ in range(KILLS):
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
    subprocess.run(
        [*PRODUCER, str(path), "singles"],
        cwd=ROOT,
        env=environment,
        check=True,
        capture_output=True,
    )
    syncs = counted.stat().st_size
    assert 200 <= syncs <= 200 * 1.1 + 20  # making and closing the file sync, too


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
@pytest.mark.parametrize("at", [1, 5, 17, *range(40, 40 + FAULTS)])
def test_what_was_acknowledged_outlives_a_disk_that_fails_at_any_write(
    path: Path, fault: Path, code: int, at: int
) -> None:
    environment = os.environ | {
        "LD_PRELOAD": str(fault),
        "FAULT_AT": str(at),
        "FAULT_ERRNO": str(code),
    }
    argv = [*PRODUCER, str(path), "faulty"]
    ended = subprocess.run(
        argv, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert "Traceback" not in ended.stderr
    assert ended.returncode == 1, "the disk failed before all was written"
    told = [line.split() for line in ended.stdout.splitlines()]
    if not path.exists():
        assert told == []
        return
    hashes = [row.hash.hex() for row in recorded(path)]
    for size, head in told:
        assert hashes[int(size) - 1] == head
    assert len(hashes) % 3 == 1, "no list is there in half"
    subprocess.run(argv, cwd=ROOT, check=True, capture_output=True)
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
