"""Level namespaces: a plain user's stages, each in a machine of its own.

As root the spawner is made a plain user's, inside a pid namespace with bystanders; one of these
has the very uid of the stages.
"""

import contextlib
import os
import shutil
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from tests.namespaced import ORDINARY, Namespace, possible
from tests.spawner.conftest import Runner
from tests.spawner.ordinary import work_of
from thermite.errors import InfrastructureError
from thermite.rig.stages import Slot, Stages
from thermite.rig.start import spawner
from thermite.schema.stage import Limits

PLAIN = [f"--reuid={ORDINARY}", f"--regid={ORDINARY}", "--clear-groups"]
READS_THE_INTERPRETER = ["--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"]
"""Tests may run from root's home; a stage gives this up with everything else."""


@pytest.fixture
def alone(place: Path) -> Iterator[Stages]:
    if os.getuid() == 0 and not possible():
        pytest.skip("no pid namespace can be made here: this needs CAP_SYS_ADMIN")
    state = place / "rig"
    state.mkdir()
    try:
        if os.getuid() != 0:
            with spawner(state, isolation="namespaces") as stages:
                yield stages
            return
        os.chown(state, ORDINARY, ORDINARY)
        become = [str(shutil.which("setpriv")), *PLAIN, *READS_THE_INTERPRETER]
        with (
            Namespace() as ns,
            spawner(state, isolation="namespaces", within=[*ns.prefix, *become]) as stages,
        ):
            yield stages
            assert ns.bystanders() == 3
    except InfrastructureError as error:
        if "isolation namespaces can't be had" in str(error):
            pytest.skip(str(error))
        raise


@pytest.fixture
def run(alone: Stages) -> Iterator[Runner]:
    with alone.slot("run-0") as slot:
        yield Runner(alone, slot)


FORBID = 'echo 0 > /proc/sys/user/max_user_namespaces && exec "$@"'
"""Within a user namespace of its own, whose setting it is."""


def test_where_the_machine_forbids_them_auto_steps_down_and_says_so(place: Path) -> None:
    if os.getuid() == 0:
        pytest.skip("a plain user's: in a namespace root's rights don't reach its interpreter")
    unshare = [str(shutil.which("unshare")), "--user", "--map-current-user", "--keep-caps"]
    within = [*unshare, "sh", "-c", FORBID, "sh"]
    with spawner(place / "rig", isolation="auto", within=within) as stages:
        assert stages.isolation.level == "none"
        why = stages.passed_over["namespaces"]
        assert why == (
            "a stage of builder can't be set up: OSError: [Errno 28] No space left on device:"
            " 'unshare'"
        )
    with (
        pytest.raises(InfrastructureError, match="isolation namespaces can't be had"),
        spawner(place / "other", isolation="namespaces", within=within),
    ):
        pass


def test_when_the_spawner_is_killed_nothing_of_a_stage_is_left(alone: Stages) -> None:
    if os.getuid() == 0:
        pytest.skip("here the end of the spawner is the end of its test's own pid namespace")
    with contextlib.suppress(InfrastructureError), alone.slot("run-0") as slot:
        text = "setsid sleep 99 & sleep 99"
        thread = threading.Thread(target=_until_it_is_gone, args=(Runner(alone, slot), text))
        thread.start()
        until(lambda: len(working_in(slot)) >= 2)
        ours = [one for one in psutil.Process().children(recursive=True) if _is_spawner(one)]
        min(ours, key=psutil.Process.create_time).kill()
        thread.join()
        until(lambda: not working_in(slot))
    assert working_in(slot) == []


def _until_it_is_gone(run: Runner, text: str) -> None:
    with contextlib.suppress(InfrastructureError):
        run.sh(text)


def _is_spawner(one: psutil.Process) -> bool:
    return "-I" in one.cmdline() and any(word.endswith("/spawner") for word in one.cmdline())


def until(found: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not found():
        assert time.monotonic() < end
        time.sleep(0.01)


def working_in(slot: Slot) -> list[int]:
    """Return the processes of this machine that work in a slot's folder."""
    found = []
    for one in psutil.process_iter():
        try:
            if Path(one.cwd()) == slot.folder:
                found.append(one.pid)
        except (psutil.Error, OSError):
            continue
    return found


def test_the_record_names_what_was_applied(run: Runner) -> None:
    record = run.sh("true").isolation
    assert record.level == "namespaces"
    assert {"userns", "pidns", "mntns", "ipcns", "netns", "tmpfs"} <= set(record.features)
    assert record.network == "netns+seccomp"
    assert record.gaps == ["clock_lock", "queued_memory"]
    assert record.proof is not None
    assert record.proof.survivors == 0


def test_rig_homes_and_others_processes_are_not_there(run: Runner, place: Path) -> None:
    (place / "rig" / "kit").write_text("answers")
    # A clone below /opt lies where systems keep what all may read.
    clone = "/home" if Path(__file__).is_relative_to("/opt") else Path(__file__).parent
    result = run.sh(f"cat {place}/rig/kit; ls /root /home {clone}; ls -d /proc/[0-9]*")
    assert result.stdout.split() == [b"/proc/1", b"/proc/2"]
    assert result.stderr.count(b"No such file") == 4


def test_nothing_is_gained_inside(run: Runner) -> None:
    text = "grep -E 'Cap(Prm|Eff|Amb)' /proc/self/status; id -u; touch /usr/x /x /etc/x"
    result = run.sh(text)
    *sets, uid = result.stdout.split()
    assert set(sets[1::2]) == {b"0" * 16}
    assert int(uid) == run.slot.folder.stat().st_uid
    assert result.stderr.count(b"Read-only file system") == 3


def test_shared_folders_are_empty_its_own_bounded_and_gone_with_the_stage(run: Runner) -> None:
    fill = "head -c 48M /dev/zero > /dev/shm/x; echo $?; stat -c %s /dev/shm/x"
    assert run.sh(f"ls -A /tmp /dev/shm; {fill}", rss_mib=32).stdout.split() == [
        b"/dev/shm:",
        b"/tmp:",
        b"1",
        b"%d" % (32 << 20),
    ]
    assert run.sh("ls -A /dev/shm").stdout == b""
    assert not Path("/dev/shm/x").exists()


def test_the_machines_network_and_abstract_sockets_are_not_there(run: Runner) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("\0thermite-own-root")
        server.listen()
        connect = "import socket\nsocket.socket(1).connect('\\0thermite-own-root')"
        assert run.python(connect).exit_code == 1
    assert (
        b"EAFNOSUPPORT"
        in run.python(
            "import errno, socket\n"
            "try: socket.socket(socket.AF_INET)\n"
            "except OSError as error: print(errno.errorcode[error.errno])"
        ).stdout
    )


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("setsid sh -c 'sleep 99 & sleep 99' & sleep 99 & exit 0", id="daemons"),
        pytest.param("b() { b & b & }; b; sleep 0.2", id="bomb"),
        pytest.param("trap '' TERM INT HUP; sleep 99 & kill -STOP $!", id="stopped"),
    ],
)
def test_nothing_of_a_stage_outlives_it(run: Runner, text: str) -> None:
    result = run.sh(text, processes=64, timeout_s=5)
    assert result.isolation.proof is not None
    assert result.isolation.proof.survivors == 0
    assert working_in(run.slot) == []


def test_a_stage_can_neither_end_nor_look_into_the_init_that_ends_it(run: Runner) -> None:
    result = run.sh(
        "kill -KILL 1; kill -STOP 1; cat /proc/1/environ; ls /proc/1/root/; sleep 0.1; echo here"
    )
    assert result.stdout == b"here\n"
    assert result.stderr.count(b"Permission denied") == 2


def test_the_end_waits_for_no_cpu_on_which_the_next_stage_is_made(run: Runner) -> None:
    said = run.sh("grep Cpus_allowed: /proc/1/status").stdout
    assert said.startswith(b"Cpus_allowed:")
    assert said in Path("/proc/self/status").read_bytes()


def test_a_signal_to_everybody_reaches_nobody_outside(run: Runner) -> None:
    if os.getuid() != 0:
        pytest.skip("where a fault would end your own processes, it is not tried")
    assert run.sh("kill -KILL -1; echo alone").stdout == b"alone\n"


def test_the_main_process_ends_as_at_every_level(run: Runner) -> None:
    assert run.python("import os; os.abort()").exit_code == 134
    assert run.sh("exit 7").exit_code == 7
    assert run.sh("sleep 9", timeout_s=0.2).killed == "timeout"


def test_memory_of_orphans_counts(run: Runner) -> None:
    text = """
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        held = b"x" * (96 << 20)
        time.sleep(9)
    os._exit(0)
time.sleep(9)
"""
    assert run.python(text, rss_mib=64).killed == "memory"


def test_processes_are_bounded_by_stage(run: Runner) -> None:
    text = """
import os, time
made = 0
try:
    while made < 50:
        if os.fork() == 0:
            time.sleep(9)
        made += 1
except BlockingIOError:
    pass
print(made)
"""
    assert run.python(text, processes=16).stdout == b"15\n"


def test_work_goes_on_as_at_every_level(alone: Stages, place: Path) -> None:
    said, meant = work_of(alone, place, ORDINARY if os.getuid() == 0 else None)
    assert said == meant


def test_another_slot_stands_still_in_a_block_with_its_orphans(alone: Stages) -> None:
    count = "(setsid sh -c 'while :; do echo >> ticks; sleep 0.01; done' &); sleep 9"
    with alone.slot("worker-0") as worker, alone.slot("run-0") as slot:
        thread = threading.Thread(
            target=lambda: worker.run(
                ["sh", "-c", count], env={"PATH": "/usr/bin:/bin"}, limits=Limits(timeout_s=1.5)
            )
        )
        thread.start()
        ticks = worker.folder / "ticks"
        end = time.monotonic() + 5
        while not ticks.exists() and time.monotonic() < end:
            time.sleep(0.01)
        with alone.block():
            before = ticks.stat().st_size
            Runner(alone, slot).sh("sleep 0.2")
            assert ticks.stat().st_size == before
        thread.join()


CROWD = """
import array, os, resource, socket, time
most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
null, kept = os.open("/dev/null", os.O_RDONLY), []
while True:
    a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    kept += [a, b]
    a.setblocking(False)
    sent = array.array("i", [null] * 252 + [b.fileno()])
    try:
        while True: a.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, sent)])
    except BlockingIOError: continue
    except OSError: break
open("full", "w").close()
time.sleep(60)
"""


def test_what_a_stage_has_on_its_way_keeps_no_other_stage_from_starting(alone: Stages) -> None:
    """Descriptors in sockets' buffers are counted by user, and the user is the spawner's own."""
    with alone.slot("worker-0") as worker, alone.slot("run-0") as slot:
        thread = threading.Thread(target=Runner(alone, worker).python, args=(CROWD,))
        thread.start()
        until((worker.folder / "full").exists)
        try:
            assert Runner(alone, slot).sh("echo on").stdout == b"on\n"
        finally:
            worker.stop()
            thread.join()
