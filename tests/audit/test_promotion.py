"""A promotion to carry away: our check and the independent one agree on every file."""

import base64
import json
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.golden.make_promotion import KEY, make
from tests.simulated_campaign import Home, Life
from tests.tools.test_verify_ledger import doctored, resigned
from thermite.audit.evidence import Evidence
from thermite.audit.promotion import export, verify
from thermite.cli.root import run
from thermite.command.envelope import digest, read_envelope, seal
from thermite.command.signing_key import SigningKey
from thermite.errors import LedgerError, NotFoundError
from thermite.kit.git import make_repository
from thermite.ledger.replay import recorded
from thermite.schema import event as e
from thermite.schema.promotion import Made, PromotionFile

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "golden"
MADE = Made(by="thermite test", at="2026-01-31T12:00:00Z")
Whole = dict[str, Any]


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(
        shutil.copy(GOLDEN / "promotion/ledger.db", tmp_path_factory.mktemp("rig") / "ledger.db")
    )


@pytest.fixture
def whole(ledger: Path) -> Whole:
    return dict(msgspec.to_builtins(export(ledger, "163", made=MADE)))


def second_opinion(path: Path) -> int:
    """Return its exit code; all that fails says so, and nothing ends in a traceback."""
    tool = ROOT / "tools" / "verify_ledger.py"
    done = subprocess.run(
        [sys.executable, "-I", tool, path], capture_output=True, check=False, timeout=60
    )
    assert b"Traceback" not in done.stderr, done.stderr
    assert (done.returncode == 8) == (b"FAIL " in done.stdout)
    return done.returncode


def test_a_file_passes_with_the_rigs_key(whole: Whole, tmp_path: Path) -> None:
    raw = json.dumps(whole).encode()
    found = verify(raw, KEY.public)
    assert (found.problem, found.key_pinned, found.coin_open) == (None, True, False)
    assert (found.events, found.size) == (158, 419)
    assert found.summary.gain == pytest.approx(0.25, abs=0.01)
    path = tmp_path / "p.json"
    path.write_bytes(raw)
    assert second_opinion(path) == 0


def test_a_block_that_two_things_disturbed_at_once_is_no_forgers(tmp_path: Path) -> None:
    """As after a machine was suspended: each reason was known, and not both together."""
    life = Life(Home(tmp_path, {"ms": 100}, {"01-fast": {"ms": 80}}, key=KEY))
    both = {"steal_ticks": 99, "suspended_ns": 10**9}
    life.stages.disturb = dict.fromkeys(range(60, 4000, 45), both)
    assert life.run()
    told = {row.seq: row.event.data for row in recorded(life.home.rig.ledger)}
    [promoted] = [seq for seq, data in told.items() if isinstance(data, e.ChampionPromoted)]
    drops = [data.dropped for data in told.values() if isinstance(data, e.Block) and data.attempt]
    assert "steal, suspended" in drops
    raw = msgspec.json.encode(export(life.home.rig.ledger, str(promoted), made=MADE))
    assert verify(raw, KEY.public).problem is None
    (tmp_path / "p.json").write_bytes(raw)
    assert second_opinion(tmp_path / "p.json") == 0


def test_it_is_named_by_number_id_or_commit(ledger: Path, whole: Whole) -> None:
    body = next(e["body"] for e in whole["events"] if e["seq"] == 163)
    for name in (json.loads(body)["id"], whole["summary"]["candidate"]["commit"][:7]):
        assert msgspec.to_builtins(export(ledger, name, made=MADE)) == whole
    with pytest.raises(NotFoundError, match="no promotion is called 'a61'"):
        export(ledger, "a61", made=MADE)


def test_it_carries_the_machine_and_the_whole_attempt(whole: Whole) -> None:
    kinds = {json.loads(event["body"])["type"] for event in whole["events"]}
    assert {"ledger_opened", "assignment_created", "mcp_servers", "rig_selftest"} <= kinds
    assert {"build", "judge_started", "run", "check", "block", "decision", "verdict"} <= kinds
    assert {"champion_promoted", "assignment_ended"} <= kinds
    assert "attempt_started" not in kinds


def body_of(whole: Whole, kind: str) -> Whole:
    return next(e for e in whole["events"] if f'"type":"{kind}"' in e["body"])


def replaced(kind: str, old: str, new: str) -> Callable[[Whole], None]:
    def change(whole: Whole) -> None:
        event = body_of(whole, kind)
        assert old in event["body"]
        event["body"] = event["body"].replace(old, new)

    return change


def key_of_another(whole: Whole) -> None:
    whole["rig_key"] = base64.b64encode(SigningKey.generate().public.raw).decode()


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(replaced("verdict", '"gain":0.2', '"gain":0.9'), id="an event"),
        pytest.param(lambda w: w["summary"].update(gain=0.9), id="the summary's gain"),
        pytest.param(lambda w: w["summary"].update(cells=["big"]), id="the summary's cells"),
        pytest.param(lambda w: w["summary"]["kit"].update(commit="0" * 40), id="the kit"),
        pytest.param(lambda w: w["events"].remove(body_of(w, "run")), id="a run left out"),
        pytest.param(lambda w: w["events"].reverse(), id="the order"),
        pytest.param(lambda w: w["events"].pop(0), id="event 1 left out"),
        pytest.param(lambda w: w["proof"].pop(), id="a hash too few"),
        pytest.param(lambda w: w["proof"].append(w["proof"][0]), id="a hash too many"),
        pytest.param(lambda w: w["proof"].clear(), id="no proof"),
        pytest.param(key_of_another, id="another key"),
        pytest.param(lambda w: w.update(checkpoint="thermite"), id="no checkpoint"),
        pytest.param(
            lambda w: w.update(checkpoint=w["checkpoint"].replace("\n419\n", "\n418\n")),
            id="the checkpoint's size",
        ),
        pytest.param(lambda w: w["events"].clear(), id="no events"),
        pytest.param(lambda w: w["events"][9].update(body="[]"), id="an event that is a list"),
        pytest.param(replaced("run", '"assignment":', '"assignmenu":'), id="a key of an event"),
        pytest.param(replaced("judge_started", '"k":1', '"q":1'), id="a key of data"),
        pytest.param(replaced("assignment_created", '"commit":', '"c":'), id="a first champion"),
        pytest.param(
            replaced("champion_promoted", '"commit":"', '"commit":"\\ud800\\nPASS '),
            id="a lone surrogate",
        ),
        pytest.param(
            lambda w: w.update(checkpoint=w["checkpoint"].replace("\n419\n", f"\n{'9' * 4000}\n")),
            id="a size of 4000 digits",
        ),
    ],
)
def test_any_change_fails_in_both(
    whole: Whole, tmp_path: Path, change: Callable[[Whole], object]
) -> None:
    change(whole)
    raw = json.dumps(whole).encode()
    assert verify(raw).problem is not None
    path = tmp_path / "p.json"
    path.write_bytes(raw)
    assert second_opinion(path) == 8


FORGED = {"interval": (0.19, 0.21)}


@pytest.mark.parametrize(
    ("lies", "said"),
    [
        pytest.param({52: {"ucb": 0.3}}, "screen says 0.2177", id="screen"),
        pytest.param({160: {"lcb": 0.22081}}, "confirm says 0.22081 to", id="confirm"),
        pytest.param({162: FORGED, 163: FORGED}, "give an interval of", id="verdict and promotion"),
        pytest.param({163: FORGED}, "give an interval of", id="promotion"),
    ],
)
def test_an_interval_that_the_runs_do_not_give_carries_nothing(
    ledger: Path, lies: dict[int, dict[str, object]], said: str
) -> None:
    def evidence(changed: dict[int, dict[str, object]]) -> Evidence:
        events = [row.event for row in recorded(ledger)]
        for seq, fields in changed.items():
            data = msgspec.structs.replace(events[seq - 1].data, **fields)
            events[seq - 1] = msgspec.structs.replace(events[seq - 1], data=data)
        return Evidence(events, events[163 - 1])

    evidence({}).check()
    with pytest.raises(LedgerError, match=said):
        evidence(lies).check()


SENT = seal(b'{"v":1}', "application/vnd.thermite.command.v1+json", [KEY])


@pytest.fixture(scope="module")
def ordered(tmp_path_factory: pytest.TempPathFactory) -> Whole:
    """Export the promotion of a ledger whose assignment came by a kept command."""
    folder = tmp_path_factory.mktemp("ordered")
    sent = digest(read_envelope(SENT).payload)

    def renamed(connection: sqlite3.Connection) -> None:
        rows = connection.execute("SELECT seq, body, dedup FROM events").fetchall()
        for seq, body, dedup in rows:
            body_now = body.replace(b"5" * 64, sent.encode()).replace(b"5" * 32, b"6" * 32)
            key = dedup and dedup.replace("5" * 32, "6" * 32)
            row = (body_now, key, seq)
            connection.execute("UPDATE events SET body = ?, dedup = ? WHERE seq = ?", row)

    path = doctored(folder, renamed, resigned)
    return dict(msgspec.to_builtins(export(path, "163", made=MADE))) | {
        "command": base64.b64encode(SENT).decode()
    }


def test_a_command_passes_when_the_events_name_its_payload(ordered: Whole, tmp_path: Path) -> None:
    raw = json.dumps(ordered).encode()
    assert (verify(raw).problem, verify(raw).command) == (None, True)
    (tmp_path / "p.json").write_bytes(raw)
    assert second_opinion(tmp_path / "p.json") == 0


OTHER = seal(b'{"v":2}', "application/vnd.thermite.command.v1+json", [KEY])


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(base64.b64encode(OTHER).decode(), id="another command"),
        pytest.param(base64.b64encode(SENT[:-9]).decode(), id="half of it"),
        pytest.param(base64.b64encode(b"[1]").decode(), id="no envelope"),
        pytest.param("no base64", id="no base64"),
        pytest.param("", id="empty"),
    ],
)
def test_another_command_fails_in_both(ordered: Whole, tmp_path: Path, command: str) -> None:
    raw = json.dumps(ordered | {"command": command}).encode()
    assert "its command" in (verify(raw).problem or "")
    (tmp_path / "p.json").write_bytes(raw)
    assert second_opinion(tmp_path / "p.json") == 8


def test_no_part_of_a_file_changes_in_silence(
    ordered: Whole, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whatever a signature does not cover is named as not proven, or its change fails."""
    whole = ordered | {"patch": "diff"}
    for name, other in {
        "format": "thermite.promotion/2",
        "made": {"by": "x", "at": "y"},
        "summary": whole["summary"] | {"k": 2},
        "rig_key": base64.b64encode(SigningKey.generate().public.raw).decode(),
        "checkpoint": whole["checkpoint"].replace("time 2", "time 3"),
        "events": whole["events"][:-1],
        "proof": whole["proof"][:-1],
        "command": base64.b64encode(OTHER).decode(),
        "patch": "another",
    }.items():
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps(whole | {name: other}))
        ended = run(["verify", str(path)])
        assert ended != 0 or f"{name}: not proven" in capsys.readouterr().out, name
    assert set(whole) == set(PromotionFile.__struct_fields__)


def test_a_promotion_without_runs_is_no_evidence(tmp_path: Path) -> None:
    ledger = Path(shutil.copy(GOLDEN / "ledger/ledger.db", tmp_path))
    with pytest.raises(LedgerError, match="parameters of the rule"):
        export(ledger, "18", made=MADE)


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"[" * 100_000, id="deep"),
        pytest.param(b'{"format":"thermite.promotion/1"}', id="fields missing"),
        pytest.param(b'{"format":"thermite.promotion/2"}', id="a later format"),
    ],
)
def test_what_is_no_promotion_file_ends_in_words(raw: bytes) -> None:
    with pytest.raises(LedgerError, match="it is no promotion file"):
        verify(raw)


def test_the_commands_write_a_file_and_check_it(
    ledger: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "gain.json"
    public = base64.b64encode(KEY.public.raw).decode()
    assert run(["export", "163", "--ledger", str(ledger), "-o", str(target)]) == 0
    assert run(["export", "163", "--ledger", str(ledger), "-o", str(target)]) == 5
    assert run(["verify", str(target), "--rig-key", public]) == 0
    assert "PASS: 158 of 419 events, signed\n" in capsys.readouterr().out
    other = base64.b64encode(SigningKey.generate().public.raw).decode()
    assert run(["verify", str(target), "--rig-key", other, "--json"]) == 8
    told = json.loads(capsys.readouterr().out)
    assert not told["holds"]
    assert "signed it" in told["problem"]
    assert run(["verify", str(tmp_path / "none")]) == 3
    make_repository(tmp_path / "other.git")
    assert run(["verify", str(target), "--project", str(tmp_path / "other.git")]) == 8


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        pytest.param(["{here}"], 3, "{here} is no file", id="a folder"),
        pytest.param(["{ledger}"], 1, "{ledger} is a ledger and no promotion file", id="a ledger"),
        pytest.param(["{file}", "--project", "{here}/x"], 3, "no folder {here}/x", id="no project"),
        pytest.param(["{file}", "--project", "{here}"], 2, "{here} is no git", id="no repository"),
        pytest.param(["{file}", "--rig-key", "rig-1.pub"], 2, "'rig-1.pub' is no file", id="key"),
    ],
)
def test_a_slip_of_who_checks_is_no_finding_against_the_promotion(
    words: list[str],
    code: int,
    said: str,
    ledger: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    places = {"here": tmp_path, "ledger": ledger, "file": tmp_path / "my gain.json"}
    assert run(["export", "163", "--ledger", str(ledger), "-o", str(places["file"])]) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.endswith(f"thermite verify '{places['file']}'"), "a line to copy"
    assert run(["verify", *(word.format(**places) for word in words)]) == code
    assert said.format(**places) in capsys.readouterr().err


def test_a_project_bears_out_the_patch_or_the_check_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The patch is proven by the trees of both commits; a changed one is not."""
    state = make(tmp_path).parent
    target, project = tmp_path / "gain.json", str(state / "repos/project-p.git")
    with sqlite3.connect(state / "ledger.db") as file:
        query = "SELECT seq FROM events WHERE type = 'champion_promoted'"
        seq = str(file.execute(query).fetchone()[0])
    assert run(["export", seq, "--state", str(state), "--patch", "-o", str(target)]) == 0
    capsys.readouterr()
    assert run(["verify", str(target), "--project", project]) == 0
    assert "patch: it turns the champion's tree into" in capsys.readouterr().out
    text = target.read_text()
    for old, new, why in (("80}", "81}", "its patch makes tree"), ("100}", "99}", "does not fit")):
        assert text.count(f'\\"ms\\": {old}') == 1
        target.write_text(text.replace(f'\\"ms\\": {old}', f'\\"ms\\": {new}'))
        assert run(["verify", str(target), "--project", project, "--json"]) == 8
        told = json.loads(capsys.readouterr().out)
        assert why in told["problem"]
        assert told["parts"] == {"command": None, "patch": "not proven", "made": "not proven"}
