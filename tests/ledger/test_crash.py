"""What was acknowledged is there, whatever happened to the process or the disk."""

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
from thermite.errors import LedgerUnavailableError
from thermite.ledger.append import Ledger
from thermite.ledger.replay import recorded

ROOT = Path(__file__).parents[2]
PRODUCER = [sys.executable, "-m", "tests.ledger.producer"]
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
