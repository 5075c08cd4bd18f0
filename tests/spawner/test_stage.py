"""One stage: started, stamped, limited, ended and proven gone. No uid of its own is needed."""

import os
import subprocess
import threading
import time
from pathlib import Path

import psutil
import pytest

from tests.requirement import shows
from tests.spawner.conftest import Runner
from thermite.errors import InfrastructureError
from thermite.rig.stages import Stages
from thermite.rig.start import FOLDER, spawner
from thermite.schema.stage import Limits


@shows("K-101", "K-105")
def test_a_stage_gets_exactly_the_environment_that_was_asked_for(run: Runner) -> None:
    for name in ("LD_PRELOAD", "PYTHONPATH", "GIT_DIR", "BASH_ENV"):
        os.environ[name] = "/nonesuch"
    try:
        result = run.argv("env")
    finally:
        for name in ("LD_PRELOAD", "PYTHONPATH", "GIT_DIR", "BASH_ENV"):
            del os.environ[name]
    assert result.stdout.decode() == f"PATH={run.rig.path_variable}\n"


def test_a_stage_holds_no_descriptor_of_anybody_else(run: Runner) -> None:
    result = run.argv("python3", "-I", "-S", "-c", "import os; print(os.listdir('/proc/self/fd'))")
    assert result.stdout == b"['0', '1', '2', '3']\n"  # 3 is the listing's own


def test_the_exit_code_is_a_shells(run: Runner) -> None:
    assert run.sh("exit 7").exit_code == 7
    assert run.sh("kill -TERM $$").exit_code == 143


def test_a_program_that_cannot_be_executed_is_the_candidates_failure(run: Runner) -> None:
    result = run.argv("./nonesuch")
    assert (result.exit_code, result.killed) == (127, None)
    assert result.stderr == b"cannot execute ./nonesuch: No such file or directory\n"


@shows("K-115")
def test_a_stage_is_ended_at_its_time_limit(run: Runner) -> None:
    result = run.sh("echo before; sleep 60", timeout_s=0.3)
    assert (result.killed, result.exit_code) == ("timeout", 137)
    assert result.stdout == b"before\n"
    assert 300_000_000 <= result.record.t_ns < 10_000_000_000


def test_the_clock_covers_the_program_and_not_the_settling(rig: Stages) -> None:
    with rig.slot("run-0") as slot:
        result = slot.run(
            ["sleep", "0.1"],
            env={"PATH": rig.path_variable},
            limits=Limits(timeout_s=20),
            timed=True,
            settle_ms=2000,
        )
    assert 100_000_000 <= result.record.t_ns < 1_900_000_000


@shows("K-121")
def test_a_daemon_dies_with_the_stage_and_its_output_is_kept(run: Runner) -> None:
    began = time.monotonic()
    result = run.sh("echo kept; setsid sleep 47.125 & exit 0")
    assert time.monotonic() - began < 15
    assert (result.exit_code, result.stdout) == (0, b"kept\n")
    assert result.isolation.proof is not None
    assert result.isolation.proof.survivors == 0
    listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, check=True).stdout
    assert b"sleep 47.125" not in listed


@shows("K-120")
def test_only_the_end_of_a_flood_is_kept_and_it_is_exact(run: Runner) -> None:
    result = run.python(
        "import sys\n"
        "for i in range(200000): sys.stdout.write('%08d\\n' % i)\n"
        "sys.stderr.write('x' * 100000)\n",
    )
    whole = b"".join(b"%08d\n" % i for i in range(200000))
    assert result.stdout == whole[-65536:]
    assert result.stderr == b"x" * 65536


def test_joined_output_is_in_the_order_it_was_written(rig: Stages) -> None:
    with rig.slot("builder-0") as slot:
        result = slot.run(
            ["sh", "-c", "echo a; echo b >&2; echo c"],
            env={"PATH": rig.path_variable},
            limits=Limits(timeout_s=20),
            join_output=True,
        )
    assert (result.stdout, result.stderr) == (b"a\nb\nc\n", b"")


@shows("K-116")
def test_memory_over_the_limit_ends_the_stage(run: Runner) -> None:
    result = run.python("x = b'1' * (300 << 20)\nimport time; time.sleep(60)", rss_mib=100)
    assert result.killed == "memory"


@shows("K-116")
def test_the_memory_of_two_processes_is_summed(run: Runner) -> None:
    text = "import os, time\nos.fork()\nx = b'1' * (80 << 20)\ntime.sleep(60)"
    assert run.python(text, rss_mib=120).killed == "memory"


@shows("K-117")
def test_disk_over_the_limit_ends_the_stage(run: Runner) -> None:
    text = "for i in 1 2 3 4 5 6; do head -c 4M /dev/zero > f$i; done; sleep 60"
    assert run.sh(text, disk_mib=10).killed == "disk"


def test_one_file_cannot_grow_over_the_limit_between_samples(run: Runner) -> None:
    result = run.python(
        "import os, signal\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "fd = os.open('f', os.O_CREAT | os.O_WRONLY)\n"
        "try: os.posix_fallocate(fd, 0, 11 << 20)\n"
        "except OSError as e: print(e.errno)\n",
        disk_mib=10,
    )
    assert result.stdout == b"27\n"  # EFBIG


@shows("K-118")
def test_fifty_thousand_files_count_as_over_the_disk_limit(run: Runner) -> None:
    text = "import os, time\nfor i in range(50000): os.mknod(f'{i}')\ntime.sleep(200)"
    assert run.python(text, disk_mib=10_000, timeout_s=200).killed == "disk"


@shows("K-118")
def test_deep_nesting_counts_as_over_the_disk_limit_and_is_removed(run: Runner) -> None:
    text = "import os, time\nfor _ in range(6000): os.mkdir('d' * 50); os.chdir('d' * 50)\n"
    folder = run.slot.folder
    assert run.python(text + "time.sleep(60)", disk_mib=1000).killed == "disk"
    assert folder.exists()


@pytest.mark.parametrize(
    ("levels", "killed"),
    [pytest.param(127, None, id="K-118-127"), pytest.param(128, "disk", id="K-118-128")],
)
def test_nesting_counts_from_128_levels_on(run: Runner, levels: int, killed: str | None) -> None:
    result = run.sh(f"mkdir -p {'/'.join('d' * levels)}; sleep 2", disk_mib=100)
    assert result.killed == killed


@shows("K-122")
def test_after_a_timeout_what_still_holds_the_output_is_ended_too(run: Runner) -> None:
    began = time.monotonic()
    result = run.sh("setsid sh -c 'echo held; sleep 300' & sleep 300", timeout_s=1)
    assert (result.killed, result.stdout) == ("timeout", b"held\n")
    assert time.monotonic() - began < 1 + 15 + 15
    assert result.isolation.proof is not None
    assert result.isolation.proof.survivors == 0


def test_a_stage_copy_is_readable_only_where_it_was_granted(rig: Stages, tmp_path: Path) -> None:
    source = tmp_path / "kit"
    source.mkdir()
    (source / "secret").write_text("4711")
    with rig.slot("run-0") as slot, rig.copy_for("run-0") as copy:
        copy.add(source, "kit")
        argv = ["cat", str(copy.path / "kit/secret")]
        env, limits = {"PATH": rig.path_variable}, Limits(timeout_s=20)
        granted = slot.run(argv, env=env, limits=limits, readable=(copy,))
        refused = slot.run(argv, env=env, limits=limits)
    assert granted.stdout == b"4711"
    assert refused.stdout == b""
    assert not copy.path.exists()


def test_the_startup_probe_is_a_program_that_does_nothing(rig: Stages) -> None:
    with rig.slot("run-0") as slot:
        times = rig.startup_probe_ns(slot, 5)
        assert list(slot.folder.iterdir()) == []
    assert len(times) == 5
    assert all(0 < one < 1_000_000_000 for one in times)


def test_a_run_leaves_no_terminal_and_no_setuid_bit(run: Runner) -> None:
    assert run.sh("exec 3<>/dev/tty").exit_code != 0
    assert b"not permitted" in run.sh("cp /bin/true x; chmod 4755 x").stderr


@pytest.mark.parametrize(
    "call",
    ["socket.socket(2, 1)", "socket.socket(2, 2)", "socket.socket(10, 1)", "socket.socket(40, 1)"],
)
def test_a_run_has_no_socket_but_unix_ones(run: Runner, call: str) -> None:
    text = f"import socket\nsocket.socketpair()\ntry: {call}\nexcept OSError as e: print(e.errno)\n"
    assert run.python(text).stdout == b"97\n"


def test_a_frozen_slot_stands_still_and_no_limit_counts_it(rig: Stages) -> None:
    text = (
        "import os, time\nos.fork()\nwhile 1:\n open('beat', 'a').write('x'); time.sleep(0.005)\n"
    )
    with rig.slot("worker-0") as slot:
        worker, results = Runner(rig, slot), []
        thread = threading.Thread(target=lambda: results.append(worker.python(text, timeout_s=6.0)))
        thread.start()
        beat = slot.folder / "beat"
        while not beat.exists():
            time.sleep(0.01)
        with rig.block():
            before = beat.stat().st_size
            time.sleep(6.5)
            assert beat.stat().st_size == before
        thread.join()
        assert beat.stat().st_size > before + 20  # it went on: the limit was not frozen time's
    assert results[0].killed == "timeout"


def test_a_stage_of_another_job_begins_after_the_block(rig: Stages) -> None:
    with rig.slot("builder-0") as builder, rig.slot("run-0") as slot:
        results: list[float] = []

        def build() -> None:
            Runner(rig, builder).sh("true")
            results.append(time.monotonic())

        with rig.block():
            thread = threading.Thread(target=build)
            thread.start()
            Runner(rig, slot).sh("sleep 0.5")
            ended = time.monotonic()
            assert results == []
        thread.join()
    assert results[0] > ended


def test_two_blocks_never_time_at_once_on_one_cpu(tmp_path: Path) -> None:
    with (
        spawner(tmp_path / "one", isolation="none", run_dir=tmp_path) as first,
        spawner(tmp_path / "two", isolation="none", run_dir=tmp_path) as second,
    ):
        order: list[str] = []

        def other() -> None:
            with second.block():
                order.append("second")

        with first.block():
            thread = threading.Thread(target=other)
            thread.start()
            time.sleep(0.5)
            order.append("first")
        thread.join()
    assert order == ["first", "second"]


def test_nothing_piles_up_in_the_spawner(run: Runner) -> None:
    run.sh("true")
    before = _descriptors_of_the_spawner()
    for _ in range(30):
        run.sh("true & exit 0", timeout_s=20, rss_mib=500, disk_mib=100)
        run.argv("nonesuch")
        with pytest.raises(InfrastructureError):
            run.slot.run(["true"], env={}, limits=Limits(), cwd=Path("/"))
    end = time.monotonic() + 10
    while (left := _what_piles_up(before)) and time.monotonic() < end:
        time.sleep(0.02)
    assert not left


def _what_piles_up(before: int) -> list[str]:
    children = _spawner().children()
    found = {
        "descriptors": _descriptors_of_the_spawner() > before + 2,
        "zombies": any(one.status() == psutil.STATUS_ZOMBIE for one in children),
        "children": len(children) > 3,  # the attendant and what is forked ahead
    }
    return [what for what, is_so in found.items() if is_so]


def _spawner() -> psutil.Process:
    mine = [one for one in psutil.Process().children() if str(FOLDER) in one.cmdline()]
    return max(mine, key=lambda one: (one.create_time(), one.pid))  # others serve other tests


def _descriptors_of_the_spawner() -> int:
    """Only root may count them: the spawner is closed to others of its own user."""
    return _spawner().num_fds() if os.getuid() == 0 else 0


def test_run_cpus_that_are_not_there_are_refused(tmp_path: Path) -> None:
    with (
        pytest.raises(InfrastructureError, match="which this process may use"),
        spawner(tmp_path / "rig", isolation="none", run_cpus=[4095]),
    ):
        pass


def test_a_timed_run_is_on_the_run_cpus(rig: Stages) -> None:
    with rig.slot("run-0") as slot:
        result = slot.run(
            ["sh", "-c", "grep Cpus_allowed_list /proc/self/status"],
            env={"PATH": rig.path_variable},
            limits=Limits(timeout_s=20),
            timed=True,
        )
    cpus = os.sched_getaffinity(0)
    expected = [max(cpus)] if len(cpus) > 1 else sorted(cpus)
    assert result.record.cpus == expected
    assert result.stdout.split()[-1] == ",".join(str(one) for one in expected).encode()
