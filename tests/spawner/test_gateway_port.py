"""What a stage may reach when its campaign has a gateway: that, and nothing else."""

import contextlib
import socket
import threading
from collections.abc import Iterator

import pytest

from tests.levels import LEVELS, Rigs, all_rigs, rig_at, why_not
from tests.open_folder import open_folder
from thermite.errors import InfrastructureError
from thermite.rig.stages import HANDED_FD, Door, Stages, listens_inside, reaches_gateway
from thermite.schema.stage import LevelName, Limits, StageResult

INSIDE_PORT = 8422
LIMITS = Limits(timeout_s=20, rss_mib=256, disk_mib=16, processes=64)
TRIES = """
import socket
def tried(family, kind, address=None):
    try:
        with socket.socket(family, kind) as one:
            one.settimeout(2)
            if address is None:
                return "made"
            one.connect(address)
            return one.recv(64).decode()
    except OSError as error:
        return type(error).__name__
print(tried(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", {port})))
print(tried(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", {other})))
print(tried(socket.AF_INET, socket.SOCK_DGRAM))
print(tried(socket.AF_INET, socket.SOCK_RAW))
print(tried(socket.AF_NETLINK, socket.SOCK_RAW))
print(tried(socket.AF_INET6, socket.SOCK_STREAM))
"""


@pytest.fixture(scope="module")
def rigs() -> Iterator[Rigs]:
    with all_rigs() as made:
        yield made


def greeter(listener: socket.socket, text: bytes) -> None:
    with contextlib.suppress(OSError):
        while True:
            peer, _ = listener.accept()
            with peer:
                peer.sendall(text)


@contextlib.contextmanager
def greeting(text: bytes) -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=greeter, args=(listener, text), daemon=True).start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)


def connects(rig: Stages, port: int, other: int, handed: int | None) -> StageResult:
    with rig.slot("worker-0") as slot:
        return slot.run(
            ["python3", "-c", TRIES.format(port=port, other=other)],
            env={"PATH": rig.path_variable},
            limits=LIMITS,
            door=Door(handed, port),
        )


@pytest.mark.parametrize("level", LEVELS)
def test_a_worker_reaches_its_gateway_and_nothing_else(rigs: Rigs, level: LevelName) -> None:
    rig = rigs.at(level)
    assert reaches_gateway(rig.isolation)
    with greeting(b"the gateway") as port, greeting(b"another") as other:
        if listens_inside(rig.isolation):
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            with ours, theirs:
                threading.Thread(target=_serve_inside, args=(ours,), daemon=True).start()
                done = connects(rig, INSIDE_PORT, other, theirs.fileno())
        else:
            done = connects(rig, port, other, None)
    said = done.stdout.decode().splitlines()
    assert said[0] == "the gateway", (said, done.stderr)
    assert said[1] in {"PermissionError", "ConnectionRefusedError"}
    assert said[2:5] == ["OSError", "OSError", "OSError"]
    assert said[5] == "made"
    assert done.isolation.network.endswith("+gateway")


def _serve_inside(ours: socket.socket) -> None:
    _, fds, _, _ = socket.recv_fds(ours, 16, 1)
    with socket.socket(fileno=fds[0]) as listener:
        greeter(listener, b"the gateway")


@pytest.mark.parametrize("level", LEVELS)
def test_without_a_port_a_worker_makes_no_ip_socket(rigs: Rigs, level: LevelName) -> None:
    rig = rigs.at(level)
    with rig.slot("worker-0") as slot:
        done = slot.run(
            ["python3", "-c", "import socket; socket.socket()"],
            env={"PATH": rig.path_variable},
            limits=LIMITS,
        )
    assert b"OSError" in done.stderr


@pytest.mark.parametrize("slot_name", ["run-0", "check", "builder-0", "import"])
def test_no_stage_of_the_judge_is_let_to_a_gateway(rigs: Rigs, slot_name: str) -> None:
    rig = rigs.at("none")
    with (
        rig.slot(slot_name) as slot,
        pytest.raises(InfrastructureError, match="is no agent's: it is handed nothing"),
    ):
        slot.run(["true"], env={}, limits=LIMITS, door=Door(port=80))


@pytest.mark.parametrize("port", [0, 65536])
def test_what_is_no_port_is_refused(rigs: Rigs, port: int) -> None:
    rig = rigs.at("none")
    with rig.slot("worker-0") as slot, pytest.raises(InfrastructureError, match="no TCP port"):
        slot.run(["true"], env={}, limits=LIMITS, door=Door(port=port))


def test_a_stage_keeps_what_it_is_handed(rigs: Rigs) -> None:
    rig = rigs.at("none")
    ours, theirs = socket.socketpair()
    with ours, theirs, rig.slot("worker-0") as slot:
        listed = "print(sorted(os.listdir('/proc/self/fd')))"
        code = f"import os; os.write({HANDED_FD}, b'hello'); {listed}"
        done = slot.run(
            ["python3", "-c", code],
            env={"PATH": rig.path_variable},
            limits=LIMITS,
            door=Door(theirs.fileno()),
        )
        assert done.exit_code == 0, done.stderr
        ours.settimeout(5)
        assert ours.recv(16) == b"hello"
    assert done.stdout.decode().startswith("['0', '1', '2', '3', '4']")  # 3 reads the folder


@pytest.mark.parametrize("level", LEVELS)
def test_a_slot_reads_the_folders_that_it_is_given(level: LevelName) -> None:
    if (problem := why_not(level)) is not None:
        pytest.skip(problem)
    with open_folder() as place:
        shown = place / "shown"
        shown.mkdir(mode=0o755)
        (shown / "words.txt").write_text("read me\n")
        (shown / "words.txt").chmod(0o644)
        script = f"cat {shown}/words.txt; echo x 2>/dev/null >> {shown}/words.txt || echo kept"
        reach = {"gateway-0": [shown]}
        slots = {"gateway-0": True, "worker-0": False}
        with rig_at(level, place, slots=slots, slot_reach=reach) as rig:
            said = {}
            for name in slots:
                with rig.slot(name) as slot:
                    env = {"PATH": rig.path_variable}
                    said[name] = slot.run(["sh", "-c", script], env=env, limits=LIMITS).stdout
        assert said["gateway-0"] == b"read me\nkept\n"
        if level != "users":  # there a file's mode decides
            assert said["worker-0"] == b"kept\n"
