"""Level users: what one stage can do to the next, to other slots and to the rig's files.

Everything here can reach a kill(-1) and runs in a pid namespace of its own; the fixture also
holds that its bystanders are alive at the end of each test.
"""

import os
import signal
import time
from pathlib import Path

import pytest

from tests.attack.candidates import DEMOTERS
from tests.requirement import shows
from tests.spawner.conftest import WIDE, Runner, live
from thermite.rig.stages import Stages
from thermite.schema.stage import Entry, Limits

LOOP = "import os, signal\nwhile 1:\n try: os.kill(-1, signal.{})\n except OSError: pass"
BOMB = """
import os
while 1:
    try: os.fork()
    except OSError: pass
"""
COMETS = """
import os
for _ in range(8):
    if os.fork() == 0: break
while 1:
    try: pid = os.fork()
    except OSError: continue
    if pid: os._exit(0)
"""


def test_each_slot_has_a_uid_of_its_own_and_the_record_names_it(users_rig: Stages) -> None:
    seen = set()
    for name, word in (("builder-0", "builder"), ("run-0", "run"), ("check", "check")):
        with users_rig.slot(name) as slot:
            result = Runner(users_rig, slot).sh("id -u; id -g; id -G")
        record = result.isolation
        assert result.stdout.decode().split() == [str(record.uid)] * 3
        assert (record.level, record.user) == ("users", word)
        seen.add(record.uid)
    assert len(seen) == 3
    assert 0 not in seen


def test_an_honest_end_is_proven_without_a_kill_and_a_survivors_with_one(
    users_run: Runner,
) -> None:
    honest, left = users_run.sh("true").isolation, users_run.sh("setsid sleep 99 &").isolation
    assert honest.proof is not None
    assert (honest.proof.survivors, honest.proof.rounds) == (0, 0)
    assert left.proof is not None
    assert left.proof.survivors == 0
    assert left.proof.rounds > 0
    assert live(left.uid) == 0


@shows("K-121")
def test_a_survivor_is_gone_before_the_next_stage_starts(users_run: Runner) -> None:
    text = "setsid sh -c 'setsid sleep 99 & sleep 99' & exit 0"
    first = users_run.sh(text)
    assert live(first.isolation.uid) == 0
    assert first.isolation.proof is not None
    assert first.isolation.proof.survivors == 0
    assert b"sleep 99" not in users_run.sh("ps -eo args").stdout


@pytest.mark.parametrize("attack", [LOOP.format("SIGKILL"), LOOP.format("SIGSTOP")])
def test_an_attacker_cannot_outlive_the_stage(users_run: Runner, attack: str) -> None:
    for _ in range(10):
        result = users_run.python(attack, timeout_s=0.2)
        assert live(result.isolation.uid) == 0
        assert result.isolation.proof is not None
        assert result.isolation.proof.kill_ms < 5000
        assert result.killed == "timeout"


@pytest.mark.parametrize("attack", [DEMOTERS, BOMB, COMETS], ids=["demoters", "bomb", "comets"])
def test_many_processes_cannot_outlive_the_stage(users_run: Runner, attack: str) -> None:
    for _ in range(2):
        result = users_run.python(attack, timeout_s=0.5, processes=256)
        assert live(result.isolation.uid) == 0
        assert result.isolation.proof is not None
        assert result.isolation.proof.survivors == 0


def test_a_stage_cannot_enter_another_slots_folder_or_list_the_stage_root(
    users_rig: Stages,
) -> None:
    with users_rig.slot("builder-0") as builder, users_rig.slot("run-0") as slot:
        builder.place([Entry(path=b"secret", kind="file", data=b"4711")])
        other = Runner(users_rig, slot)
        assert other.sh(f"cat {builder.folder}/secret").stdout == b""
        assert b"Permission denied" in other.sh(f"ls {builder.folder.parent}").stderr
        assert other.sh(f"echo x > {builder.folder}/y").exit_code != 0


def test_a_stage_copy_opens_to_its_own_slot_and_only_when_granted(
    users_rig: Stages, tmp_path: Path
) -> None:
    source = tmp_path / "build"
    source.write_text("#!/bin/sh\necho ran\n")
    source.chmod(0o755)
    with (
        users_rig.slot("run-0") as slot,
        users_rig.slot("builder-0") as builder,
        users_rig.copy_for("run-0") as copy,
    ):
        copy.add(source, "out/bench")
        argv, env = [str(copy.path / "out/bench")], {"PATH": users_rig.path_variable}
        limits = Limits(timeout_s=20)
        assert slot.run(argv, env=env, limits=limits, readable=(copy,)).stdout == b"ran\n"
        assert slot.run(argv, env=env, limits=limits).exit_code == 126
        assert builder.run(argv, env=env, limits=limits, readable=()).exit_code == 126
        writes = f"chmod 777 {argv[0]}; echo x >> {argv[0]}; rm {argv[0]}; mv {copy.path} /tmp/z"
        slot.run(["sh", "-c", writes], env=env, limits=limits, readable=(copy,))
        assert slot.run(argv, env=env, limits=limits, readable=(copy,)).stdout == b"ran\n"


def test_a_setuid_copy_gives_nobody_an_identity(users_rig: Stages) -> None:
    with users_rig.slot("builder-0") as slot:
        Runner(users_rig, slot).sh("cp $(command -v id) /tmp/thermite-id; chmod 6755 /tmp/*-id")
        result = Runner(users_rig, slot).sh("ls /tmp/thermite-id")
    assert result.exit_code != 0  # swept with the stage that left it


@shows("K-121")
def test_nothing_of_a_stage_is_left_for_the_next_one(users_run: Runner) -> None:
    # Another run of these tests may be at work in the same shared folders.
    left_name, file_name = f"thermite-left-{os.getpid()}", f".thermite-file-{os.getpid()}"
    shared = Path("/tmp") / f"thermite-shared-{os.getpid()}"
    shared.mkdir()
    shared.chmod(0o777)
    try:
        first = users_run.python(
            "import ctypes, os, socket\n"
            "libc = ctypes.CDLL(None, use_errno=True)\n"
            f"for place in ('/tmp', '/var/tmp', '/dev/shm', '/run/lock', '{shared}'):\n"
            " try:\n"
            f"  os.makedirs(place + '/{left_name}/a/b'); os.chmod(place + '/{left_name}', 0)\n"
            f"  open(place + '/{file_name}', 'w').write('x')\n"
            " except FileNotFoundError: pass\n"
            "print(libc.shmget(4711, 4096, 0o1666) >= 0, libc.semget(4711, 1, 0o1666) >= 0,\n"
            "      libc.msgget(4711, 0o1666) >= 0)\n"
            "print(libc.mq_open(b'/thermite', os.O_CREAT | os.O_RDWR, 0o666, None))\n"
            "print(libc.syscall(250, 0, -3, 1), ctypes.get_errno())\n"
        )
        assert first.stdout == b"True True True\n-1\n-1 38\n", first.stderr
        assert first.isolation.proof is not None
        assert first.isolation.proof.swept >= 3 + 4 * 2
        left = users_run.sh(f"ls -a /tmp /var/tmp /dev/shm /run/lock {shared}; cat /proc/sysvipc/*")
        assert left_name.encode() not in left.stdout
        assert file_name.encode() not in left.stdout
        assert b" 4711 " not in left.stdout
        assert str(first.isolation.uid).encode() not in left.stdout
    finally:
        assert list(shared.iterdir()) == []
        shared.rmdir()


@pytest.mark.parametrize(
    "hold",
    [
        "f = open('/dev/shm/held', 'wb')\nfor _ in range(200): f.write(b'1' * 2**20)\nf.flush()",
        (
            "libc = ctypes.CDLL(None)\nlibc.shmat.restype = ctypes.c_void_p\n"
            "i = libc.shmget(0, 200 << 20, 0o1666)\np = libc.shmat(i, None, 0)\n"
            "ctypes.memset(p, 1, 200 << 20)\nlibc.shmdt(ctypes.c_void_p(p))"
        ),
        "libc = ctypes.CDLL(None)\nfor _ in range(75): libc.semget(0, 32000, 0o600)",
        (
            "libc = ctypes.CDLL(None)\ntext = ctypes.create_string_buffer(b'x' * 8, 8192)\n"
            "for _ in range(9000):\n i = libc.msgget(0, 0o600)\n"
            " for _ in range(2): libc.msgsnd(i, text, 8184, 0o4000)"
        ),
    ],
    ids=["a file in /dev/shm", "a segment", "semaphores", "queues"],
)
def test_memory_that_no_process_maps_counts_too(users_run: Runner, hold: str) -> None:
    result = users_run.python(f"import ctypes, time\n{hold}\ntime.sleep(60)", rss_mib=100)
    assert result.killed == "memory", result


def test_mapped_shared_memory_counts_once(users_run: Runner) -> None:
    text = (
        "import mmap, time\nf = open('/dev/shm/held', 'w+b')\nf.truncate(60 << 20)\n"
        "m = mmap.mmap(f.fileno(), 60 << 20)\nfor i in range(0, 60 << 20, 4096): m[i] = 1\n"
        "time.sleep(1)"
    )
    assert users_run.python(text, rss_mib=100).killed is None


def test_zombies_of_one_slot_do_not_use_up_anothers_processes(users_rig: Stages) -> None:
    text = "import os, time\nfor _ in range(60):\n if os.fork() == 0: os._exit(0)\ntime.sleep(0.5)"
    with users_rig.slot("builder-0") as builder, users_rig.slot("run-0") as slot:
        first = Runner(users_rig, builder).python(text, processes=64)
        second = Runner(users_rig, slot).sh("true & true & wait; exit 0", processes=64)
        again = Runner(users_rig, builder).sh("true & true & wait; exit 0", processes=64)
    assert (first.exit_code, second.exit_code, again.exit_code) == (0, 0, 0)


@shows("K-119")
def test_the_process_limit_holds(users_run: Runner) -> None:
    text = (
        "import os, time\nn = 0\ntry:\n while 1:\n  if os.fork() == 0: time.sleep(60)\n  n += 1\n"
    )
    result = users_run.python(text + "except OSError: print(n)", processes=20)
    assert result.stdout == b"19\n"


@pytest.mark.parametrize(
    "call",
    ["socket.socket(2, 1)", "socket.socket(2, 2)", "socket.socket(10, 1)", "socket.socket(40, 1)"],
)
def test_a_stage_has_no_network(users_run: Runner, call: str) -> None:
    text = f"import socket\nsocket.socketpair()\ntry: {call}\nexcept OSError as e: print(e.errno)\n"
    result = users_run.python(text)
    assert result.stdout == b"97\n"
    assert result.isolation.network == "seccomp"


def test_a_foreign_system_call_table_ends_the_process(users_run: Runner) -> None:
    code = "b8670100 00 bb02000000 b901000000 31d2 cd80 c3"  # int 0x80: socket(2, 1, 0)
    result = users_run.python(
        "import ctypes, mmap\n"
        f"code = bytes.fromhex('{code}')\n"
        "m = mmap.mmap(-1, 4096, prot=7); m.write(code)\n"
        "f = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(m)))\n"
        "print(f())\n"
    )
    if os.uname().machine != "x86_64":
        pytest.skip("int 0x80 is of x86-64")
    assert (result.exit_code, result.stdout) == (128 + signal.SIGSYS, b"")


def test_a_stage_cannot_signal_trace_or_slow_the_rig(users_run: Runner) -> None:
    result = users_run.python(
        "import ctypes, os, signal\n"
        "for call in (lambda: os.kill(os.getppid(), 9), lambda: os.kill(1, 9),\n"
        "             lambda: open(f'/proc/{os.getppid()}/environ').read(),\n"
        "             lambda: os.sched_setscheduler(os.getppid(), 5, os.sched_param(0)),\n"
        "             lambda: os.setpriority(os.PRIO_PROCESS, os.getppid(), 19),\n"
        "             lambda: os.setuid(0), lambda: os.listdir(f'/proc/{os.getppid()}/fd')):\n"
        " try: call(); print('done')\n"
        " except OSError as e: print(e.errno)\n"
    )
    assert set(result.stdout.split()) <= {b"1", b"13"}
    assert len(result.stdout.split()) == 7


def test_a_stage_has_no_capability_no_terminal_and_low_limits(users_run: Runner) -> None:
    text = users_run.sh("cat /proc/self/status /proc/self/oom_score_adj; ulimit -c; tty").stdout
    for line in (b"CapEff:\t0000000000000000", b"CapPrm:\t0000000000000000", b"NoNewPrivs:\t1"):
        assert line in text
    assert b"Seccomp:\t2" in text
    assert text.split()[-4:] == [b"800", b"0", b"not", b"a"] or b"800\n0\nnot a tty" in text
    assert users_run.sh("exec 3<>/dev/tty").exit_code != 0


@pytest.mark.parametrize(
    "command", ["unshare -U true", "mount -t tmpfs x .", "nsenter -t 1 -m true"]
)
def test_a_stage_makes_no_namespace_and_no_mount(users_run: Runner, command: str) -> None:
    assert users_run.sh(command).exit_code != 0


def test_outputs_that_nobody_may_read_are_still_collected(
    users_run: Runner, tmp_path: Path
) -> None:
    users_run.sh("mkdir -p out/d; echo 1 > out/d/f; chmod 0 out/d/f out/d")
    into = tmp_path / "into"
    into.mkdir()
    got = users_run.slot.collect(["out"], into, WIDE)
    assert [one.path for one in got.files] == ["out/d/f"]
    assert (into / "out/d/f").stat().st_mode & 0o7777 == 0o444


def test_a_hard_link_to_a_foreign_file_is_refused(
    users_run: Runner, place: Path, tmp_path: Path
) -> None:
    foreign = place / "rig/stages" / users_run.slot.folder.name / "foreign"
    foreign.write_text("4711")
    foreign.chmod(0o666)
    users_run.sh("mkdir out; ln foreign out/a; mv foreign out/b")
    into = tmp_path / "into"
    into.mkdir()
    got = users_run.slot.collect(["out"], into, WIDE)
    assert len(got.problems) >= 1
    assert list(into.iterdir()) == []


def test_a_descriptor_kept_over_the_copy_changes_nothing(users_run: Runner, tmp_path: Path) -> None:
    users_run.sh("mkdir out; echo good > out/a")
    held = (users_run.slot.folder / "out/a").open("r+")
    into = tmp_path / "into"
    into.mkdir()
    users_run.slot.collect(["out"], into, WIDE)
    held.write("evil")
    held.close()
    assert (into / "out/a").read_text() == "good\n"


def test_slots_that_are_not_of_the_block_stand_still_in_it(users_rig: Stages) -> None:
    import threading

    text = (
        "import os, time\nos.fork()\nwhile 1:\n open('beat', 'a').write('x'); time.sleep(0.005)\n"
    )
    with users_rig.slot("worker-0") as slot:
        worker = Runner(users_rig, slot)
        results = []
        thread = threading.Thread(target=lambda: results.append(worker.python(text, timeout_s=6.0)))
        thread.start()
        beat = slot.folder / "beat"
        while not beat.exists():
            time.sleep(0.01)
        with users_rig.block():
            before = beat.stat().st_size
            time.sleep(6.5)
            assert beat.stat().st_size == before
        thread.join()
        assert beat.stat().st_size > before + 20  # it went on: the limit was not frozen time's
    assert results[0].killed == "timeout"
