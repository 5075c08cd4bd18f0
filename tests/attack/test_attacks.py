"""Every attack comes to what it must, leaves nothing, and the next honest job is honest.

At every level that the machine offers (tests/levels.py); where a slot has a user of its own,
beside three bystanders that must live (tests/namespaced.py proves the namespace first).
"""

import os
import time
from pathlib import Path

import pytest

from tests.attack.candidates import ATTACKS, Attack
from tests.attack.further import FURTHER
from tests.attack.leavings import owned_in_shared_folders
from tests.levels import LEVELS, OWN_USER, Rigs
from tests.spawner.conftest import WIDE, Runner, live
from thermite.schema.stage import CollectLimits, LevelName

LONGEST_END_S = 5.0
"""Generous: a stage's end is proven within milliseconds, or within the killer's five seconds."""


def elsewhere() -> dict[str, tuple[str, str]]:
    """Rows whose test needs more than one stage, with its file and its name."""
    users, stage = "tests/spawner/test_users.py", "tests/spawner/test_stage.py"
    judged = "tests/attack/test_judged.py"
    outputs, build = "tests/spawner/test_outputs.py", "tests/judge/build/test_build.py"
    return {
        "5": (users, "test_a_stage_copy_opens_to_its_own_slot_and_only_when_granted"),
        "7": (outputs, "test_a_collector_is_never_led_to_foreign_bytes_by_a_renamer"),
        "8": (users, "test_a_descriptor_kept_over_the_copy_changes_nothing"),
        "9": (build, "test_declared_outputs_that_a_commit_holds_are_left_out"),
        "19": (stage, "test_only_the_end_of_a_flood_is_kept_and_it_is_exact"),
        "20": (stage, "test_a_stage_gets_exactly_the_environment_that_was_asked_for"),
        "24": (users, "test_nothing_of_a_stage_is_left_for_the_next_one"),
        "25": (users, "test_zombies_of_one_slot_do_not_use_up_anothers_processes"),
        "28": (outputs, "test_removing_is_never_led_outside_by_a_swapped_link"),
        "3": (judged, "test_3_a_check_that_unpickles_an_output_hands_out_nothing"),
        "6": (judged, "test_a_committed_link_leads_the_judge_nowhere"),
        "21": (
            judged,
            "test_21_a_build_sees_the_bytes_that_git_stores_whatever_the_attributes_say",
        ),
        "22": (judged, "test_a_tree_that_git_itself_could_be_led_by_is_refused_by_name"),
        "27": (
            "tests/attack/test_affinity.py",
            "test_a_run_on_other_cpus_than_it_was_given_says_so_in_its_record",
        ),
        "29": (judged, "test_29_a_hostile_name_reaches_ledger_and_terminal_as_plain_text"),
        "31": (users, "test_outputs_that_nobody_may_read_are_still_collected"),
        "36": (users, "test_slots_that_are_not_of_the_block_stand_still_in_it"),
        "37": (
            "tests/attack/test_two_rigs.py",
            "test_two_rigs_judge_at_once_and_never_time_at_once",
        ),
        "38": ("benchmarks/spawn.py", "beside_files"),
    }


@pytest.mark.parametrize("row", elsewhere())
def test_a_row_that_is_tested_elsewhere_is_tested_there(row: str) -> None:
    file, name = elsewhere()[row]
    assert f"def {name}(" in (Path(__file__).parents[2] / file).read_text()


def test_no_row_of_the_ranked_table_is_left_out() -> None:
    ids = [attack.name for attack in ATTACKS]
    ids += [str(param.id) for param in (*OUTPUTS, *NAMES)]
    tried = {one.partition("-")[0] for one in ids} | elsewhere().keys()
    assert {str(row) for row in range(1, 39)} <= tried


CASES = [
    pytest.param(attack, level, id=f"{attack.name}-{level}")
    for attack in (*ATTACKS, *FURTHER)
    for level in attack.levels
]


@pytest.mark.parametrize(("attack", "level"), CASES)
def test_an_attack_comes_to_nothing(
    rigs: Rigs, attack: Attack, level: LevelName, tmp_path: Path
) -> None:
    rig = rigs.at(level)
    with rig.slot("run-0") as slot:
        runner = Runner(rig, slot)
        result = runner.python(attack.program, **attack.limits)
        assert result.killed == attack.killed, result.stderr[-500:]
        if attack.code is not None:
            assert result.exit_code == attack.code, result.stderr[-500:]
        if attack.said is not None:
            assert " ".join(result.stdout.decode().split()) == attack.said
        proof = result.isolation.proof
        assert proof is not None
        assert proof.survivors == 0
        assert proof.kill_ms < LONGEST_END_S * 1000
        if level in OWN_USER:
            assert live(result.isolation.uid) == 0
            assert owned_in_shared_folders(result.isolation.uid) == []
    began = time.monotonic()
    with rig.slot("run-0") as slot:
        assert time.monotonic() - began < LONGEST_END_S
        honest = Runner(rig, slot).sh("ls; mkdir out; echo honest > out/x")
        assert (honest.killed, honest.exit_code, honest.stdout) == (None, 0, b"")
        kept = slot.collect(["out/x"], tmp_path, WIDE)
    assert (kept.problems, kept.missing) == ([], [])
    assert (tmp_path / "out/x").read_bytes() == b"honest\n"


@pytest.mark.parametrize("level", LEVELS)
def test_B13_every_byte_on_both_streams_is_kept_and_the_next_run_is_heard(  # noqa: N802
    rigs: Rigs, level: LevelName
) -> None:
    says = "import sys\nfor s in (sys.stdout, sys.stderr):\n s.buffer.write(bytes(range(256)))"
    rig = rigs.at(level)
    with rig.slot("run-0") as slot:
        runner = Runner(rig, slot)
        for _ in range(2):
            result = runner.python(says)
            assert (result.killed, result.exit_code) == (None, 0)
            assert result.stdout == result.stderr == bytes(range(256))


@pytest.mark.parametrize("level", LEVELS)
def test_B9_the_last_64_kib_of_a_stream_are_kept_to_the_byte(  # noqa: N802
    rigs: Rigs, level: LevelName
) -> None:
    says = (
        "import sys\nsys.stdout.buffer.write('é'.encode() * (1 << 19) + b'x')\n"
        "sys.stderr.buffer.write(bytes(1 << 20) + b'\\x1b[2J' * 9999)"
    )
    rig = rigs.at(level)
    with rig.slot("run-0") as slot:
        result = Runner(rig, slot).python(says)
    assert (result.killed, result.exit_code) == (None, 0)
    assert result.stdout == "é".encode()[1:] + "é".encode() * 32767 + b"x"
    assert result.stderr == bytes(65536 - 4 * 9999) + b"\x1b[2J" * 9999


OUTPUTS = [
    pytest.param("ln -s /etc/passwd out/a", "out/a is a symbolic link", id="17-link"),
    pytest.param("ln -s .. out/d", "out/d is a symbolic link", id="17-link-to-a-folder"),
    pytest.param("ln -s nowhere out/a", "out/a is a symbolic link", id="P1-dangling"),
    pytest.param("mkfifo out/p", "out/p is a named pipe", id="15-pipe"),
    pytest.param(
        "python3 -c \"import socket; socket.socket(socket.AF_UNIX).bind('out/s')\"",
        "out/s is a socket",
        id="15-socket",
    ),
    pytest.param(
        "echo x > out/a; ln out/a out/b",
        "out/a is a hard link: the file has 2 names",
        id="16-hard-link",
    ),
]


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(("text", "problem"), OUTPUTS)
def test_an_output_that_is_no_plain_file_is_refused_by_name(
    rigs: Rigs, text: str, problem: str, level: LevelName, tmp_path: Path
) -> None:
    rig = rigs.at(level)
    with rig.slot("run-0") as slot:
        result = Runner(rig, slot).sh(f"mkdir out; {text}")
        assert result.exit_code == 0, result.stderr
        kept = slot.collect(["out"], tmp_path, WIDE)
    assert problem in kept.problems
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("level", LEVELS)
def test_P5_the_copy_of_a_sparse_output_takes_no_more_room_than_it_did(  # noqa: N802
    rigs: Rigs, level: LevelName, tmp_path: Path
) -> None:
    rig = rigs.at(level)
    wide = CollectLimits(entries=1, levels=1, total_bytes=40 << 20)
    with rig.slot("run-0") as slot:
        assert Runner(rig, slot).sh("truncate -s 40M x; echo end >> x").exit_code == 0
        kept = slot.collect(["x"], tmp_path, wide)
        assert kept.problems == ["x takes the outputs over 41943040 bytes (40 MiB)"]
        assert Runner(rig, slot).sh("truncate -s 40M x").exit_code == 0
        assert slot.collect(["x"], tmp_path, wide).problems == []
    found = (tmp_path / "x").stat()
    assert found.st_size == 40 << 20
    assert found.st_blocks * 512 < 1 << 20


NAMES = [
    pytest.param(b"a\xff\x1b[31m\n", "\\x1b[31m\\x0a", id="29-escape"),
    pytest.param(b"-rf", "-rf", id="P7-option"),
    pytest.param(b" leading", " leading", id="P7-blank"),
    pytest.param(b"n" * 255, "n" * 255, id="P7-long"),
    pytest.param("\u202egnp".encode(), "\\xe2\\x80\\xaegnp", id="P7-bidi"),
]


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(("name", "shown"), NAMES)
def test_an_odd_name_is_kept_and_shown_as_ascii(
    rigs: Rigs, name: bytes, shown: str, level: LevelName, tmp_path: Path
) -> None:
    rig = rigs.at(level)
    with rig.slot("run-0") as slot:
        program = f"import os\nos.mkdir('out')\nopen(b'out/' + {name!r}, 'w').close()"
        assert Runner(rig, slot).python(program).exit_code == 0
        kept = slot.collect(["out"], tmp_path, WIDE)
    assert kept.problems == []
    (path,) = (one.path for one in kept.files)
    assert path.isascii()
    assert path.isprintable()
    assert shown in path
    assert [os.fsencode(path.name) for path in (tmp_path / "out").iterdir()] == [name]
