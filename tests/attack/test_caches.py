"""R7: what a run keeps, by whatever channel, the next run of the cell does not find.

A candidate that keeps its output under a fingerprint of the input is fast the second time
without the work. Each channel stores in one run and looks in the next one of the same slot.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.attack.leavings import owned_in_shared_folders
from tests.levels import LEVELS, OWN_USER, Rigs
from tests.open_folder import open_folder
from tests.spawner.conftest import Runner
from thermite.schema.stage import LevelName

HEAD = """
import ctypes, os, socket, sys, time
libc = ctypes.CDLL(None, use_errno=True)
NAME = b"thermite-r7"
KEY = {"x86_64": (248, 250), "aarch64": (217, 219)}[os.uname().machine]
"""
FOUND, NONE = "found", "none"
CHANNELS = {
    "a file in shared memory": """
def put():
    open("/dev/shm/thermite-r7", "w").write("42")
def get():
    return open("/dev/shm/thermite-r7").read() == "42"
""",
    "a file in tmp": """
def put():
    open("/tmp/thermite-r7", "w").write("42")
def get():
    return open("/tmp/thermite-r7").read() == "42"
""",
    "a cache at home": """
def put():
    os.makedirs(".cache/r7"); open(".cache/r7/x", "w").write("42")
def get():
    return open(".cache/r7/x").read() == "42"
""",
    "a segment": """
def put():
    shm = libc.shmget(0x7117, 4096, 0o1666)
    if shm < 0: raise OSError("no segment")
def get():
    return libc.shmget(0x7117, 4096, 0o666) >= 0
""",
    "a keyring": """
def put():
    # The user's own keyring (-4) outlives a process.
    if libc.syscall(KEY[0], b"user", NAME, b"42", 2, -4) < 0: raise OSError("no key")
def get():
    return libc.syscall(KEY[1], 10, -4, b"user", NAME, 0) >= 0
""",
    "a daemon": """
def put():
    ready, told = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork(): os._exit(0)
        try:
            server = socket.socket(socket.AF_UNIX); server.bind(b"\\0" + NAME); server.listen()
        finally:
            os.write(told, b"x")
        while True:
            one, _ = server.accept(); one.send(b"42"); one.close()
    os.read(ready, 1)
def get():
    one = socket.socket(socket.AF_UNIX); one.settimeout(2); one.connect(b"\\0" + NAME)
    return one.recv(2) == b"42"
""",
    "a queue": """
def put():
    made = libc.mq_open(b"/thermite-r7", os.O_CREAT | os.O_RDWR, 0o666, None)
    if made < 0: raise OSError("no queue")
def get():
    return libc.mq_open(b"/thermite-r7", os.O_RDONLY) >= 0
""",
    "file times": """
def put():
    os.utime(PLACE, ns=(42, 42))
def get():
    return os.stat(PLACE).st_mtime_ns == 42
""",
}
STORE = "try: put()\nexcept OSError: pass\n"
LOOK = "try: found = get()\nexcept OSError: found = False\nprint('found' if found else 'none')\n"


KEPT_APART = [level for level in LEVELS if level != "none"]
"""Who has the judge's own user may set the times of its files: nothing takes that away."""
CASES = [
    pytest.param(name, level, id=f"R7-{name}-{level}")
    for name in CHANNELS
    for level in (KEPT_APART if name == "file times" else LEVELS)
]


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    with open_folder() as folder:
        made = folder / "place"
        made.touch()
        made.chmod(0o666)
        yield made


@pytest.mark.parametrize(("channel", "level"), CASES)
def test_the_next_run_finds_nothing_that_a_run_kept(
    rigs: Rigs, channel: str, level: LevelName, place: Path
) -> None:
    program = f"{HEAD}PLACE = {str(place)!r}\n{CHANNELS[channel]}"
    rig = rigs.at(level)
    with rig.slot("run-0") as slot:
        stored = Runner(rig, slot).python(program + STORE + LOOK)
        assert stored.exit_code == 0, stored.stderr[-500:]
        proof = stored.isolation.proof
        assert proof is not None
        assert proof.survivors == 0
        if level in OWN_USER:
            assert owned_in_shared_folders(stored.isolation.uid) == []
    with rig.slot("run-0") as slot:
        again = Runner(rig, slot).python(program + LOOK)
    assert again.exit_code == 0, again.stderr[-500:]
    assert again.stdout.split() == [NONE.encode()]


@pytest.mark.parametrize("channel", [pytest.param("a cache at home", id="R7-it was kept")])
def test_a_channel_that_is_open_within_a_run_does_work(rigs: Rigs, channel: str) -> None:
    rig = rigs.at("none")
    with rig.slot("run-0") as slot:
        stored = Runner(rig, slot).python(HEAD + CHANNELS[channel] + STORE + LOOK)
    assert stored.stdout.split() == [FOUND.encode()]


@pytest.mark.parametrize("level", [pytest.param("users", id="R7-what is left is counted")])
def test_what_a_run_leaves_is_counted_in_its_record(rigs: Rigs, level: LevelName) -> None:
    rig = rigs.at(level)
    with rig.slot("run-0") as slot:
        stored = Runner(rig, slot).python(HEAD + CHANNELS["a file in tmp"] + STORE + LOOK)
    proof = stored.isolation.proof
    assert proof is not None
    assert (stored.stdout.split(), proof.swept >= 1) == ([FOUND.encode()], True)
