"""Supervisor and harness as children: what they are given, and the rules of their restarts."""

import fcntl
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.spawner.family import WAIT, Tree
from thermite.schema.child_exit import REFUSED


def test_children_get_leased_users_and_the_rigs_folder_its_owners(
    users_tree: Callable[..., Tree], place: Path
) -> None:
    one = users_tree(WAIT, interpreter="/usr/bin/python3")
    one.until(lambda: bool(one.notes("harness") and one.notes("supervisor")))
    harness, supervisor = (one.notes(name)[0]["ids"] for name in ("harness", "supervisor"))
    assert len(set(harness)) == len(set(supervisor)) == 1
    assert harness[0] != supervisor[0] != 0 != harness[0]
    for path, mode, owner in (
        ("", 0o1771, 0),
        ("keys", 0o700, harness[0]),
        ("inbox", 0o710, harness[0]),
        ("inbox/new", 0o1773, harness[0]),
        ("outbox", 0o755, harness[0]),
        ("stages", 0o711, 0),
        ("sockets", 0o700, 0),
    ):
        found = (place / "rig" / path).stat()
        assert (found.st_mode & 0o7777, found.st_uid) == (mode, owner), path
    assert (place / "rig/inbox/new").stat().st_gid == supervisor[0]


DROPPERS = 58_741


def test_the_supervisor_and_the_droppers_alone_enter_an_inbox_that_is_their_groups(
    users_tree: Callable[..., Tree], place: Path
) -> None:
    """As after `rig init`: the supervisor could not, and the rig took no order."""
    group = place / "group"
    group.write_text(f"{Path('/etc/group').read_text()}thermite-drop:x:{DROPPERS}:\n")
    reach = "say(reached=os.access(f'{folder}/rig/inbox/new', os.W_OK | os.X_OK))\ntime.sleep(600)"
    one = users_tree(WAIT, reach, interpreter="/usr/bin/python3", group=group)
    one.until(lambda: bool(one.notes("harness") and one.notes("supervisor")))
    assert one.notes("supervisor")[0]["reached"]
    inbox = place / "rig/inbox"
    assert (inbox.stat().st_gid, inbox.stat().st_mode & 0o7777) == (DROPPERS, 0o710)
    drop = ["/usr/bin/touch", str(inbox / "new/order.json")]
    for groups, code in (((), 1), ((DROPPERS,), 0)):
        ran = subprocess.run(
            drop, user=1001, group=1001, extra_groups=groups, stderr=subprocess.DEVNULL, check=False
        )
        assert ran.returncode == code


def test_a_harness_that_cannot_read_its_program_is_root_without_capabilities_or_refused(
    users_tree: Callable[..., Tree], place: Path
) -> None:
    closed = place / "closed"
    closed.mkdir(0o700)
    shutil.copy("/usr/bin/python3", closed / "python3")
    text = "say(caps=open('/proc/self/status').read())\ntime.sleep(600)"
    one = users_tree(text, interpreter=str(closed / "python3"))
    one.until(lambda: bool(one.notes("harness")))
    note = one.notes("harness")[0]
    assert note["ids"] == [0, 0, 0]
    assert "CapEff:\t0000000000000000" in note["caps"]


def test_a_harness_that_cannot_read_its_program_is_refused_by_a_rig_that_serves(
    users_tree: Callable[..., Tree], place: Path
) -> None:
    closed = place / "closed"
    closed.mkdir(0o700)
    shutil.copy("/usr/bin/python3", closed / "python3")
    one = users_tree(WAIT, interpreter=str(closed / "python3"), fallback_root=None)
    _, said = one.process.communicate(timeout=60)
    assert b"cannot read the interpreter" in said
    assert b"install under /opt, or with pipx install --global" in said


def test_children_that_cannot_reach_the_rigs_folder_are_root_or_refused(
    users_tree: Callable[..., Tree], place: Path
) -> None:
    closed = place / "closed"
    closed.mkdir(0o700)
    one = users_tree(WAIT, interpreter="/usr/bin/python3", state="closed/rig", fallback_root=None)
    _, said = one.process.communicate(timeout=60)
    assert f"it is below {closed} with mode 0700".encode() in said
    (closed / "rig").rename(closed / "refused")
    two = users_tree(WAIT, interpreter="/usr/bin/python3", state="closed/rig")
    two.until(lambda: bool(two.notes("harness") and two.notes("supervisor")))
    assert [two.notes(name)[0]["ids"] for name in ("harness", "supervisor")] == [[0, 0, 0]] * 2


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def test_a_child_gets_its_environment_from_nothing_and_two_sockets(
    tree: Callable[..., Tree],
) -> None:
    os.environ["LD_LIBRARY_PATH"] = "/nonesuch"
    try:
        one = tree(WAIT)
    finally:
        del os.environ["LD_LIBRARY_PATH"]
    one.until(lambda: bool(one.notes("harness") and one.notes("supervisor")))
    note = one.notes("harness")[0]
    assert note["env"].keys() - {"LC_CTYPE"} == {
        "LANG",
        "THERMITE_STATE",
        "THERMITE_FD_SPAWNER",
        "THERMITE_FD_PEER",
        "THERMITE_PEER_UID",
    }
    assert note["fds"] == [0, 1, 2, 3, 4]
    assert one.stop()[0] == 0


def test_a_harness_that_dies_is_started_again_and_the_supervisor_goes_on(
    tree: Callable[..., Tree],
) -> None:
    one = tree(WAIT)
    one.until(lambda: bool(one.notes("harness") and one.notes("supervisor")))
    os.kill(one.notes("harness")[0]["pid"], signal.SIGKILL)
    one.until(lambda: len(one.notes("harness")) == 2)
    assert len(one.notes("supervisor")) == 1
    assert one.notes("harness")[1]["at"] - one.notes("harness")[0]["at"] >= 1.0
    code, said = one.stop()
    assert code == 0
    assert "harness ended with -9; starting it again in 1 s" in said


def test_the_peers_speak_over_a_restart_of_one(tree: Callable[..., Tree]) -> None:
    speak = "say(heard=peer.recv(100).decode())\ntime.sleep(600)"
    one = tree("if os.path.exists(folder + '/harness'): peer.send(b'hello')\n" + WAIT, speak)
    one.until(lambda: bool(one.notes("harness")))
    os.kill(one.notes("harness")[0]["pid"], signal.SIGKILL)
    one.until(lambda: bool(one.notes("supervisor")))
    assert one.notes("supervisor")[0]["heard"] == "hello"


def test_the_harness_dies_and_its_stage_is_ended_before_the_next_one_starts(
    tree: Callable[..., Tree],
) -> None:
    sleep = f"/bin/sleep 51.{os.getpid()}"  # no other test run counts ours, nor we theirs
    run = {
        "do": "start",
        "stage": "run",
        "slot": "run-0",
        "env": {},
        "cwd": None,
        "timed": False,
        "argv": ["/bin/sh", "-c", f"setsid {sleep} & exec {sleep}"],
        "limits": dict.fromkeys(("timeout_s", "rss_mib", "disk_mib", "processes"))
        | {"output_kib": 64},
        "settle_ms": 0,
        "join_output": False,
        "readable": [],
        "gateway_port": None,
        "log": False,
        "id": 2,
    }
    text = (
        f"living = os.popen('ps -eo args').read().count({sleep!r})\n"
        "told = ask(id=1, do='folder', slot='run-0', kind='work')\n"
        "say(living=living, told=told)\n"
        f"line.send(json.dumps({run!r}).encode())\ntime.sleep(600)"
    )
    one = tree(text)
    one.until(lambda: _count(sleep) == 2)
    os.kill(one.notes("harness")[0]["pid"], signal.SIGKILL)
    one.until(lambda: len(one.notes("harness")) == 2)
    first, second = one.notes("harness")
    assert second["living"] == 0
    assert second["told"]["ok"], second["told"]
    assert not Path(first["told"]["path"]).exists()
    assert one.stop()[0] == 0
    assert _count(sleep) == 0


def _count(args: str) -> int:
    listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True)
    return sum(line.startswith(args) for line in listed.stdout.splitlines())


def test_five_deaths_in_five_minutes_stop_the_rig_and_it_is_said_why(
    tree: Callable[..., Tree],
) -> None:
    one = tree("say()\nsys.exit(3)")
    _, said = one.process.communicate(timeout=120)  # 1 + 2 + 4 + 8 s of pauses
    assert one.process.returncode == 10
    assert len(one.notes("harness")) == 5
    assert b"harness ended with 3, the fifth time in five minutes: this rig stops" in said
    assert not _lives(one.notes("supervisor")[0]["pid"])


@pytest.mark.parametrize("name", ["harness", "supervisor"])
def test_a_child_that_would_refuse_again_ends_the_rig_at_once(
    tree: Callable[..., Tree], name: str
) -> None:
    texts = {"harness": WAIT, "supervisor": WAIT, name: f"say()\nsys.exit({REFUSED})"}
    one = tree(texts["harness"], texts["supervisor"])
    _, said = one.process.communicate(timeout=60)
    assert one.process.returncode == 10
    assert len(one.notes(name)) == 1
    assert f"thermite spawner: the {name} refuses, as it says above".encode() in said
    assert b"starting it again" not in said


def test_the_supervisor_may_ask_for_a_new_harness_and_for_nothing_else(
    tree: Callable[..., Tree],
) -> None:
    text = (
        "refused = ask(id=1, do='start')\n"
        "while not os.path.exists(folder + '/harness'): time.sleep(0.05)\n"
        "while not os.path.getsize(folder + '/harness'): time.sleep(0.05)\n"
        "say(refused=refused, done=ask(id=2, do='restart'))\ntime.sleep(600)"
    )
    one = tree(WAIT, text)
    one.until(lambda: len(one.notes("harness")) == 2)
    note = one.notes("supervisor")[0]
    assert note["refused"]["error"] == "request 1: 'start' is not one of restart"
    assert note["done"] == {"id": 2, "ok": True}


def test_the_death_of_the_spawner_is_everybodys(tree: Callable[..., Tree]) -> None:
    one = tree(WAIT)
    one.until(lambda: bool(one.notes("harness") and one.notes("supervisor")))
    one.process.kill()
    end = time.monotonic() + 30
    while any(_lives(one.notes(name)[0]["pid"]) for name in ("harness", "supervisor")):
        assert time.monotonic() < end
        time.sleep(0.02)


BLOCK = """
lives = len(open(f"{folder}/harness").readlines()) if os.path.exists(f"{folder}/harness") else 0
begin = {"id": 1, "do": "block_begin", "cpus": [0], "cards": []}
if lives == 0:
    line.send(json.dumps(begin).encode())
    say(asked=True)
    time.sleep(600)
say(begun=ask(**begin)["ok"], ended=ask(id=2, do="block_end")["ok"])
time.sleep(600)
"""


def test_a_block_that_a_dead_harness_waited_for_never_begins(
    tmp_path: Path, tree: Callable[..., Tree]
) -> None:
    """The clock lock was held for ever by nobody, and every rig of the machine waited."""
    if os.getuid() != 0:
        pytest.skip("a plain user's clock locks lie in one folder for all of this user's rigs")
    run_dir = tmp_path / "run"
    run_dir.mkdir()
    with (run_dir / "clock-cpu0.lock").open("w") as other_rig:
        fcntl.flock(other_rig, fcntl.LOCK_EX)
        one = tree(BLOCK, run_dir=run_dir)
        one.until(lambda: any("asked" in note for note in one.notes("harness")))
        time.sleep(0.2)  # the request is read, and waits
        os.kill(one.notes("harness")[0]["pid"], signal.SIGKILL)
        time.sleep(0.5)
        fcntl.flock(other_rig, fcntl.LOCK_UN)
        one.until(lambda: any("ended" in note for note in one.notes("harness")))
        assert one.notes("harness")[-1]["begun"]
        fcntl.flock(other_rig, fcntl.LOCK_EX | fcntl.LOCK_NB)
    code, _ = one.stop()
    assert code == 0
