"""Who was no stage's at a sample is not asked again, unless his number may be another's by now."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.namespaced import UNSHARE, possible
from tests.serving import ROOT
from thermite.spawner import scan
from thermite.spawner.others import Others, given_out

REUSED = """
import os, sys, time
from thermite.spawner.memory import Memory

OWN_USER = 65533 if sys.argv[1] == "user" else None

def start(duty):
    pid = os.fork()
    if pid == 0:
        duty()
        os._exit(0)
    return pid

def give_out_after(number):
    with open("/proc/sys/kernel/ns_last_pid", "w") as file:
        file.write(str(number))

def main():
    os.setsid()
    if OWN_USER is not None:
        os.setuid(OWN_USER)
    os.write(ready, b"1")
    os.read(go, 1)
    child = start(lambda: time.sleep(600))
    os.write(ready, b"%d" % child)
    time.sleep(600)

told, ready = os.pipe()
go, tell = os.pipe()
spawner = os.getpid()
main_pid = start(main)
os.read(told, 1)
stranger = start(lambda: time.sleep(600))
give_out_after(int(sys.argv[2]))
memory = Memory(OWN_USER, main_pid, spawner, most=1 << 30)
for _ in range(2):
    memory.sample()
assert set(memory.members) == {main_pid}, list(memory.members)
os.kill(stranger, 9)
os.waitpid(stranger, 0)
give_out_after(stranger - 1)
os.write(tell, b"1")
child = int(os.read(told, 16))
assert child == stranger, (child, stranger)
memory.sample()
assert set(memory.members) == {main_pid, child}, (list(memory.members), child)
"""


@pytest.mark.parametrize("whose", ["user", "tree"])
@pytest.mark.parametrize("last", [pytest.param("1", id="on"), pytest.param("1000", id="round")])
def test_a_strangers_number_that_a_stages_process_gets_at_once_is_met_by_the_next_sample(
    whose: str, last: str, tmp_path: Path
) -> None:
    """It was met a second later, with what it had taken by then."""
    if not possible():
        pytest.skip("no pid namespace can be made here: this needs root and CAP_SYS_ADMIN")
    script = tmp_path / "reused.py"
    script.write_text(REUSED)
    env = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"}
    argv = [*UNSHARE, sys.executable, str(script), whose, last]
    done = subprocess.run(argv, capture_output=True, text=True, env=env, check=False, timeout=60)
    assert done.returncode == 0, done.stderr


def test_the_numbers_that_were_given_out_go_round() -> None:
    numbers = {3, 10, 11, 20, 21, 400}
    assert given_out(numbers, 10, 20) == {11, 20}
    assert given_out(numbers, 21, 10) == {3, 10, 400}
    assert given_out(numbers, 21, 21) == set()


def test_the_last_number_given_out_is_at_least_a_new_childs_or_has_gone_round() -> None:
    before = scan.last_given()
    child = subprocess.Popen(["/bin/true"])
    child.wait()
    assert given_out({child.pid}, before, scan.last_given()) == {child.pid}


def test_all_are_asked_again_every_tenth_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan, "last_given", lambda: 0)  # as in a container that tells of none
    others, asked = Others(), []
    for _ in range(21):
        known = others.still({1, 2})
        assert known == (set() if others.asks_all else {1, 2})
        asked.append(others.asks_all)
        others.add({1, 2})
    assert [number for number, all_of_them in enumerate(asked) if all_of_them] == [0, 10, 20]
