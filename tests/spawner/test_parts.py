"""The spawner's parts by themselves: what it reads, what its filters refuse, how its tasks wait."""

import json
import os
import platform
import struct
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thermite.spawner.landlock import spared
from thermite.spawner.loop import Gate, Loop, Step, Until
from thermite.spawner.seccomp import NUMBERS, program, watching
from thermite.spawner.settings import BadSettingsError, read_settings
from thermite.spawner.vocabulary import HARNESS, RefusedError, read_request

START = {
    "id": 1,
    "do": "start",
    "stage": "run",
    "slot": "run-0",
    "argv": ["x"],
    "env": {"A": "b"},
    "limits": {
        "timeout_s": 1.5,
        "rss_mib": None,
        "disk_mib": None,
        "processes": 4,
        "output_kib": 64,
    },
    "cwd": None,
    "timed": True,
    "settle_ms": 0,
    "join_output": False,
    "readable": [],
    "gateway_port": None,
    "log": False,
}


@pytest.fixture(autouse=True)
def umask() -> Iterator[None]:
    """What runs here runs in a process of its own elsewhere, and sets its umask for good."""
    before = os.umask(0o022)
    os.umask(before)
    yield
    os.umask(before)


def test_a_whole_request_is_read() -> None:
    request = read_request(json.dumps(START).encode(), HARNESS)
    assert (request.id, request.do) == (1, "start")
    assert request.fields["limits"]["timeout_s"] == 1.5


@pytest.mark.parametrize(
    ("change", "words"),
    [
        pytest.param({"extra": 1}, "unknown field 'extra'", id="unknown field"),
        pytest.param({"argv": "x"}, "start.argv must be a JSON list", id="text for a list"),
        pytest.param({"argv": ["a\0b"]}, "holds a NUL", id="NUL"),
        pytest.param({"timed": 1}, "must be a JSON true or false", id="number for a flag"),
        pytest.param({"settle_ms": -1}, "from 0 up", id="negative"),
        pytest.param({"settle_ms": 1.5}, "must be a JSON whole number", id="fraction"),
        pytest.param({"limits": {}}, "needs the field", id="missing"),
        pytest.param({"do": "reboot"}, "'reboot' is not one of", id="unknown word"),
        pytest.param({"id": "1"}, "needs an id", id="no id"),
        pytest.param({"argv": ["x"] * 5000}, "at most 4096", id="too many"),
    ],
)
def test_a_request_that_is_not_of_the_vocabulary_is_refused(
    change: dict[str, object], words: str
) -> None:
    with pytest.raises(RefusedError, match=words) as caught:
        read_request(json.dumps({**START, **change}).encode(), HARNESS)
    assert caught.value.request == (0 if "id" in change else 1)


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"[1]",
        b'{"id": 1, "id": 2, "do": "probe"}',
        b'{"id": NaN, "do": "probe"}',
        b"[" * 60000,
        b"\xff\xfe",
        b'{"id": 1, "do": "probe"' + b" " * 70000 + b"}",
    ],
    ids=["empty", "list", "twice", "NaN", "deep", "not UTF-8", "long"],
)
def test_what_is_no_strict_json_object_is_refused(raw: bytes) -> None:
    with pytest.raises(RefusedError) as caught:
        read_request(raw, HARNESS)
    assert caught.value.request == 0


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(st.dictionaries(st.sampled_from(sorted(START)), JSON))
def test_no_request_ends_in_anything_but_a_refusal(change: dict[str, object]) -> None:
    try:
        request = read_request(json.dumps({**START, **change}).encode(), HARNESS)
    except RefusedError:
        return
    told = {**START, **change}
    assert (request.id, request.do) == (told["id"], told["do"])
    assert request.fields.items() <= told.items()


@pytest.mark.parametrize(
    ("told", "words"),
    [
        pytest.param({"colour": 1}, "must be an object of", id="unknown"),
        pytest.param({"client_fd": 3, "isolation": "most"}, "isolation is 'most'", id="level"),
        pytest.param({}, "either children or client_fd", id="nobody to serve"),
        pytest.param({"client_fd": 3, "uid_range": [0, 5]}, "must start above 0", id="root"),
        pytest.param({"children": {"harness": {"argv": [], "env": {}}}}, "supervisor", id="one"),
    ],
)
def test_settings_that_cannot_be_used_are_refused(told: dict[str, object], words: str) -> None:
    base = {"state": "/x", "stage_root": "/x/stages", "slots": {}}
    with pytest.raises(BadSettingsError, match=words):
        read_settings(json.dumps({**base, **told}).encode())


def test_a_private_folder_is_spared_with_everything_on_the_way_to_it(tmp_path: Path) -> None:
    for name in ("a/secret", "a/open", "b"):
        (tmp_path / name).mkdir(parents=True)
    kept = spared(str(tmp_path), [str(tmp_path / "a/secret")])
    assert kept == [str(tmp_path / "a/open"), str(tmp_path / "b")]
    assert spared(str(tmp_path), ["/nonesuch"]) == [str(tmp_path)]
    assert spared(str(tmp_path / "b"), [str(tmp_path)]) == []


def _run_filter(code: bytes, nr: int, arch: int, *arguments: int) -> int:
    """Interpret a classic BPF program over struct seccomp_data."""
    words = struct.pack("<IIQ6Q", nr, arch, 0, *arguments, *([0] * (6 - len(arguments))))
    steps = [struct.unpack_from("<HBBI", code, at) for at in range(0, len(code), 8)]
    at = accumulator = 0
    while True:
        op, hit, miss, value = steps[at]
        at += 1
        if op == 0x20:
            accumulator = struct.unpack_from("<I", words, value)[0]
        elif op == 0x54:
            accumulator &= value
        elif op == 0x06:
            return int(value)
        else:
            compare = {0x15: accumulator == value, 0x35: accumulator >= value}
            at += hit if compare.get(op, bool(accumulator & value)) else miss


ALLOW, KILL, ERRNO = 0x7FFF0000, 0x80000000, 0x00050000


@pytest.mark.parametrize("machine", sorted(NUMBERS))
def test_the_filter_refuses_what_the_design_says_on_every_architecture(machine: str) -> None:
    arch = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}[machine]
    code = program(machine, network="none", sysv=False)

    def asked(name: str, *arguments: int) -> int:
        return _run_filter(code, NUMBERS[machine][name], arch, *arguments)

    assert _run_filter(code, 1, arch ^ 1) == KILL
    assert asked("socket", 1) == ALLOW
    assert asked("socket", 2) == asked("socket", 40) == ERRNO | 97
    assert asked("clone", 0x11) == ALLOW
    assert asked("clone", 0x10000000) == asked("unshare") == asked("mount") == ERRNO | 1
    assert asked("clone", 0x50F00) == ALLOW  # a thread as libc makes it
    assert asked("clone", 0x50B00) == ERRNO | 1  # one with descriptors of its own
    assert asked("keyctl") == asked("shmget") == ERRNO | 38
    assert asked("fchmod", 5, 0o755) == ALLOW
    assert asked("fchmod", 5, 0o4755) == asked("fchmodat", 5, 0, 0o2755) == ERRNO | 1
    assert asked("sched_setscheduler", 0) == asked("setpriority", 0, 0) == ALLOW
    assert asked("sched_setscheduler", 7) == asked("setpriority", 2, 0) == ERRNO | 1
    assert asked("setpriority", 0, 7) == asked("ioprio_set", 1, 7) == ERRNO | 1
    assert asked("ioprio_set", 1, 0) == ALLOW
    with_all = program(machine, network="open", sysv=True)
    assert _run_filter(with_all, NUMBERS[machine]["socket"], arch, 2) == ALLOW
    assert _run_filter(with_all, NUMBERS[machine]["shmget"], arch) == ALLOW
    if machine == "x86_64":
        assert _run_filter(code, 0x40000000 | 41, arch) == KILL


@pytest.mark.parametrize("machine", sorted(NUMBERS))
def test_who_looks_at_processes_can_neither_touch_them_nor_open_anything_to_write(
    machine: str,
) -> None:
    arch = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}[machine]
    code = watching(machine)

    def asked(name: str, *arguments: int) -> int:
        return _run_filter(code, NUMBERS[machine][name], arch, *arguments)

    touching = ("ptrace", "process_vm_readv", "process_vm_writev", "open_by_handle_at")
    assert {asked(name) for name in touching} == {ERRNO | 1}
    assert _run_filter(code, 438, arch) == ERRNO | 1  # pidfd_getfd
    assert _run_filter(code, 437, arch) == ERRNO | 38  # openat2
    assert asked("openat", 0, 0, os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY) == ALLOW
    for flags in (os.O_WRONLY, os.O_RDWR, os.O_CREAT, os.O_TMPFILE):
        assert asked("openat", 0, 0, flags) == ERRNO | 1
        assert machine != "x86_64" or asked("open", 0, flags) == ERRNO | 1
    assert asked("socket", 1) == ALLOW


def test_this_machine_has_a_filter() -> None:
    assert platform.machine() in NUMBERS


def test_a_task_waits_for_descriptors_deadlines_and_gates() -> None:
    loop, said = Loop(), []
    read, write = os.pipe()
    gate = Gate(loop, is_open=False)

    def reader() -> Step[None]:
        ready = yield Until((read,))
        said.append(("read", ready == {read}))
        gate.open()

    def sleeper() -> Step[None]:
        end = time.monotonic() + 0.05
        while time.monotonic() < end:
            yield Until((), end)
        os.write(write, b"x")

    def waiter() -> Step[None]:
        said.append(("late", (yield from gate.passed(time.monotonic() + 0.01))))
        said.append(("open", (yield from gate.passed())))
        loop.stopping = True

    for steps in (reader(), sleeper(), waiter()):
        loop.start(steps)
    loop.run()
    os.close(read)
    os.close(write)
    assert said == [("late", False), ("read", True), ("open", True)]
