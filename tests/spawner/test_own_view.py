"""Level users+namespaces: what a stage sees of the machine, and what the machine of it."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.spawner.conftest import NewRig, Runner, live
from tests.spawner.ordinary import work_of
from thermite.errors import InfrastructureError
from thermite.rig.stages import Stages


@pytest.fixture
def viewed(new_rig: NewRig) -> Iterator[Stages]:
    try:
        with new_rig(isolation="users+namespaces") as stages:
            yield stages
    except InfrastructureError as error:
        if "CAP_SYS_ADMIN" in str(error):
            pytest.skip(str(error))
        raise


def test_the_record_names_what_was_applied_and_what_was_not(viewed: Stages) -> None:
    with viewed.slot("run-0") as slot:
        record = Runner(viewed, slot).sh("true").isolation
    assert record.level == "users+namespaces"
    assert {"pidns", "mntns", "ipcns", "netns", "tmpfs", "seccomp"} <= set(record.features)
    assert not {"pidns", "network", "abstract_sockets"} & set(record.gaps)
    assert record.network == "netns+seccomp"
    assert record.proof is not None
    assert record.proof.survivors == 0


def test_shared_folders_are_empty_its_own_and_gone_with_the_stage(
    viewed: Stages, tmp_path: Path
) -> None:
    with viewed.slot("run-0") as slot:
        run = Runner(viewed, slot)
        seen = run.sh(f"ls {tmp_path}; ls -A /tmp /dev/shm; touch /tmp/left /dev/shm/left").stdout
        assert seen.split() == [b"/dev/shm:", b"/tmp:"]
        assert run.sh("ls -A /tmp").stdout == b""
    assert not Path("/tmp/left").exists()
    assert not Path("/dev/shm/left").exists()


def test_others_processes_are_not_there_and_its_own_end_with_it(viewed: Stages) -> None:
    with viewed.slot("run-0") as slot:
        run = Runner(viewed, slot)
        text = "ls -d /proc/[0-9]*; kill -KILL 1; kill -KILL -1; setsid sleep 99 & echo here"
        result = run.sh(text)
        assert result.stdout.split() == [b"/proc/1", b"/proc/2", b"here"]
        assert result.isolation.proof is not None
        assert result.isolation.proof.survivors == 0
        assert live(result.isolation.uid) == 0
        assert run.python("import os; os.abort()").exit_code == 134
        assert run.sh("sleep 99", timeout_s=0.2).killed == "timeout"


def test_the_end_waits_for_no_cpu_on_which_the_next_stage_is_made(viewed: Stages) -> None:
    """It did, on two CPUs: the init could run on that one only, and making it goes first."""
    with viewed.slot("run-0") as slot:
        said = Runner(viewed, slot).sh("grep Cpus_allowed: /proc/1/status").stdout
    assert said.startswith(b"Cpus_allowed:")
    assert said in Path("/proc/self/status").read_bytes()


def test_shared_folders_are_bounded(viewed: Stages) -> None:
    fill = "head -c 48M /dev/zero > /dev/shm/x; echo $?; stat -c %s /dev/shm/x"
    with viewed.slot("run-0") as slot:
        result = Runner(viewed, slot).sh(fill, rss_mib=32)
    assert result.stdout.split() == [b"1", b"%d" % (32 << 20)]


def test_the_machines_abstract_sockets_and_links_are_not_there(viewed: Stages) -> None:
    with socket.socket(socket.AF_UNIX) as server, viewed.slot("run-0") as slot:
        server.bind("\0thermite-own-view")
        server.listen()
        run = Runner(viewed, slot)
        connect = "import socket\nsocket.socket(1).connect('\\0thermite-own-view')"
        assert b"ConnectionRefusedError" in run.python(connect).stderr
        links = run.sh("tail -n +3 /proc/self/net/dev").stdout.split()
        assert links[::17][:1] == [b"lo:"]
        assert len(links) == 17


def test_work_goes_on_as_at_every_level(viewed: Stages, tmp_path: Path) -> None:
    said, meant = work_of(viewed, tmp_path)
    assert said == meant
