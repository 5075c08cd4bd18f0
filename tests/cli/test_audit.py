"""`thermite audit` and `thermite ledger` as a person and a script meet them."""

import csv
import io
import json
import shutil
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.golden.make_ledger import KEY
from tests.ledger.facts import Clock, Facts
from thermite.cli.root import run
from thermite.ledger.append import Ledger

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests/golden/ledger/ledger.db"
CODE = "from thermite.cli.root import main; main()"


def thermite(*words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", CODE, *(str(word) for word in words)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def edited(tmp_path: Path) -> Path:
    copy = tmp_path / "ledger.db"
    shutil.copy(GOLDEN, copy)
    connection = sqlite3.connect(copy)
    connection.execute("DROP TRIGGER events_no_update")
    connection.execute(
        "UPDATE events SET body = CAST(replace(body, '0.31', '0.91') AS BLOB) WHERE seq = 17"
    )
    connection.commit()
    connection.close()
    return copy


def test_a_clean_ledger_ends_with_0_and_says_so() -> None:
    ended = thermite("audit", GOLDEN)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.splitlines()[-1] == "clean, 1 warning"
    assert "warning no_external_checkpoint: " in ended.stdout


def test_a_rigs_folder_is_named_as_other_commands_name_it(tmp_path: Path) -> None:
    shutil.copy(GOLDEN, tmp_path / "ledger.db")
    by_place, by_state = thermite("audit", tmp_path), thermite("audit", "--state", tmp_path)
    assert (by_state.returncode, by_state.stdout) == (0, by_place.stdout)
    for words in ((), (GOLDEN, "--state", tmp_path)):
        ended = thermite("audit", *words)
        assert ended.returncode == 2
        assert "which ledger? name LEDGER, or the rig's folder with --state" in ended.stderr


def test_an_edited_ledger_ends_with_8_and_names_the_event(edited: Path) -> None:
    ended = thermite("audit", edited)
    assert ended.returncode == 8
    assert "finding body_hash: event 17 is not what was hashed" in ended.stdout
    assert "finding schema_changed: " in ended.stdout
    told = json.loads(thermite("audit", edited, "--json").stdout)
    assert told["clean"] is False
    assert {"code", "severity", "seq", "expected", "got", "explain"} <= next(
        one for one in told["findings"] if one["code"] == "body_hash"
    ).keys()


def test_strict_ends_with_8_for_a_warning() -> None:
    assert thermite("audit", GOLDEN, "--strict").returncode == 8
    ended = thermite("audit", GOLDEN, "--strict", "--against", outside())
    assert (ended.returncode, ended.stdout.splitlines()[-1]) == (0, "clean, 0 warnings")


def outside() -> Path:
    return ROOT / "tests/golden/ledger/checkpoint-62.txt"


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        pytest.param(["audit", "/nonexistent"], 3, "there is no ledger at", id="no file"),
        pytest.param(["audit", ROOT], 3, "there is no ledger at", id="a folder without one"),
        pytest.param(["audit", ROOT / "LICENSE"], 1, "is no ledger", id="no ledger"),
        pytest.param(["audit"], 2, "which ledger?", id="nothing"),
        pytest.param(["audit", GOLDEN, "--against", "/nonexistent"], 3, "no file", id="against"),
        pytest.param(
            ["audit", GOLDEN, "--against", ROOT / "LICENSE"], 2, "holds no checkpoint", id="other"
        ),
        pytest.param(["audit", GOLDEN, "--keys", "/nonexistent"], 3, "no file", id="keys"),
        pytest.param(["audit", GOLDEN, "--keys", ROOT / "LICENSE"], 2, "public line", id="no keys"),
        pytest.param(["audit", GOLDEN, "--prove", "63"], 1, "has no event 63", id="proof"),
        pytest.param(["ledger", "tail", "/nonexistent"], 3, "there is no ledger", id="tail"),
        pytest.param(["ledger", "tail", ROOT / "LICENSE"], 1, "is no ledger", id="tail of text"),
        pytest.param(
            ["ledger", "replay", GOLDEN, "--until", "63"], 1, "ends at event 62", id="until"
        ),
        pytest.param(["ledger", "export", GOLDEN, "--format", "x"], 2, "'x' is not", id="format"),
        pytest.param(
            ["ledger", "export", GOLDEN, "-o", ROOT / "LICENSE"], 1, "is a file", id="overwrite"
        ),
        pytest.param(
            ["ledger", "backup", GOLDEN, ROOT / "LICENSE"], 1, "is a file", id="backup over"
        ),
    ],
)
def test_what_can_not_be_done_is_said_with_its_code(
    words: list[object], code: int, says: str
) -> None:
    ended = thermite(*words)
    assert (ended.returncode, ended.stdout) == (code, "")
    assert says in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_pinned_key_is_looked_for(tmp_path: Path) -> None:
    keys = tmp_path / "rig.pub"
    keys.write_text(f"# ours\n{KEY.public.line('rig-1')}\n")
    ended = thermite("audit", GOLDEN, "--keys", keys, "--json")
    assert json.loads(ended.stdout)["key_pinned"] is True
    assert ended.returncode == 0


def test_an_audit_prints_the_line_to_pin_beside_the_fingerprint_to_compare(tmp_path: Path) -> None:
    (said,) = (line for line in thermite("audit", GOLDEN).stdout.splitlines() if "own word" in line)
    assert f"compare {KEY.public.fingerprint} with what rig serve printed" in said
    keys = tmp_path / "rig.pub"
    keys.write_text(said[said.index("thermite-ed25519 ") :])
    ended = thermite("audit", GOLDEN, "--keys", keys)
    assert ended.returncode == 0
    assert "own word" not in ended.stdout


def test_a_proof_is_printed() -> None:
    proof = json.loads(thermite("audit", GOLDEN, "--prove", "17", "--json").stdout)["proof"]
    assert (proof["seq"], proof["size"]) == (17, 21)
    assert thermite("audit", GOLDEN, "--prove", "17").stdout.startswith("event 17 is leaf 16 of 21")


def test_a_rigs_folder_names_its_ledger() -> None:
    assert thermite("audit", GOLDEN.parent).returncode == 0


def test_a_tail_is_the_newest_events() -> None:
    lines = thermite("ledger", "tail", GOLDEN, "-n", "2").stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["61", "62"]
    told = thermite("ledger", "tail", GOLDEN, "-n", "3", "--json").stdout.splitlines()
    assert [json.loads(line)["seq"] for line in told] == [60, 61, 62]


def test_a_tail_follows_what_is_appended(tmp_path: Path) -> None:
    path, clock = tmp_path / "ledger.db", Clock()
    facts = Facts(KEY, clock)
    with Ledger.create(path, facts.opened(), KEY, now=clock) as ledger:
        command = [sys.executable, "-c", CODE, "ledger", "tail", str(path), "--follow"]
        follower = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        assert follower.stdout is not None
        first = follower.stdout.readline()
        time.sleep(0.1)
        ledger.append([facts.probe()])
        second = follower.stdout.readline()
        follower.kill()
        follower.communicate()
    assert (first.split()[0], second.split()[0]) == ("1", "2")


def test_an_export_has_each_exact_body_on_one_line() -> None:
    connection = sqlite3.connect(f"file:{GOLDEN}?immutable=1", uri=True)
    stored = connection.execute("SELECT seq, hash, body FROM events ORDER BY seq").fetchall()
    connection.close()
    lines = thermite("ledger", "export", GOLDEN).stdout.splitlines()
    assert lines == [
        f'{{"seq":{seq},"hash":"{digest.hex()}","event":{body.decode()}}}'
        for seq, digest, body in stored
    ]


def test_an_export_is_a_table_too(tmp_path: Path) -> None:
    target = tmp_path / "all.csv"
    ended = thermite("ledger", "export", GOLDEN, "--format", "csv", "-o", target)
    assert ended.stdout == f"62 events in {target}\n"
    rows = list(csv.DictReader(io.StringIO(target.read_text(), newline="")))
    assert len(rows) == 62
    assert (rows[16]["type"], json.loads(rows[16]["data"])["gain"]) == ("verdict", 0.31)
    assert rows[0]["assignment"] == ""


def test_an_export_of_an_edited_ledger_leaves_no_file(edited: Path, tmp_path: Path) -> None:
    ended = thermite("ledger", "export", edited, "-o", tmp_path / "all.jsonl")
    assert ended.returncode == 1
    assert "event 17 does not fit" in ended.stderr
    assert not (tmp_path / "all.jsonl").exists()


def test_a_replay_prints_any_past_state(edited: Path) -> None:
    state = json.loads(thermite("ledger", "replay", GOLDEN).stdout)["state"]
    assert (state["seq"], state["assignments"]["a5" * 16]["status"]) == (62, "ended")
    past = json.loads(thermite("ledger", "replay", GOLDEN, "--until", 17, "--json").stdout)["state"]
    assert (past["seq"], past["assignments"]["a5" * 16]["champion"]) == (17, "d0" * 20)
    refused = thermite("ledger", "replay", edited)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "event 17 does not fit the hash before it" in refused.stderr


def test_a_backup_is_checked_and_clean(tmp_path: Path) -> None:
    ended = thermite("ledger", "backup", GOLDEN, tmp_path / "copy.db", "--json")
    assert json.loads(ended.stdout) == {"events": 62, "file": str(tmp_path / "copy.db")}
    assert thermite("audit", tmp_path / "copy.db").returncode == 0
    assert [file.name for file in tmp_path.iterdir()] == ["copy.db"]


def test_what_a_stranger_wrote_commands_no_terminal(tmp_path: Path) -> None:
    path, clock = tmp_path / "ledger.db", Clock()
    facts = Facts(KEY, clock)
    wild = "\x1b]0;owned\x07\x9b2J\u202e\n\r" + "x" * 300
    with Ledger.create(path, facts.opened(), KEY, now=clock) as ledger:
        ledger.append([facts.refused(wild), facts.steered(wild, assignment=None, actor=wild)])
    for words in (
        ["audit", path],
        ["audit", path, "--json"],
        ["ledger", "tail", path],
        ["ledger", "tail", path, "--json"],
        ["ledger", "export", path],
        ["ledger", "export", path, "--format", "csv"],
    ):
        told = thermite(*words).stdout
        assert told
        assert not {"\x1b", "\x07", "\x9b", "\u202e", "\r"} & set(told), words


def test_neither_command_loads_a_rig_git_or_torch() -> None:
    code = (
        "import sys; import thermite.cli.audit, thermite.cli.ledger;"
        "print(sorted(n for n in sys.modules if n in ('git', 'torch', 'rich', 'sqlite_utils')"
        " or n.startswith(('thermite.rig', 'thermite.harness', 'thermite.judge.job',"
        " 'thermite.judge.build', 'thermite.judge.run', 'thermite.judge.check'))))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert ended.stdout == "[]\n"


def test_a_large_ledger_is_said_to_be_read_before_it_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["audit", str(GOLDEN)]) == 0
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("thermite.cli.audit.LARGE_BYTES", 0)
    assert run(["audit", str(GOLDEN)]) == 0
    assert capsys.readouterr().err == f"auditing {GOLDEN}: 0 MB\n"
