"""A full selftest on a rig's ledger: an event, what the rig sees, a file of noise, refusals."""

import json
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest

from tests.judge.job.simulated_desk import KIT
from tests.simulated_campaign import Home, Life
from thermite.campaign.fold import fold
from thermite.campaign.state import State
from thermite.cli.root import run
from thermite.errors import CommandError, NotFoundError, UsageError
from thermite.harness.assign_campaign import check_fitness
from thermite.harness.judge_here import Question
from thermite.harness.local_job import LocalJudge
from thermite.harness.rig_selftest import Recorder, Setting, described, full_selftest, program_of
from thermite.judge.simulate.recorded import read_recording, resampled
from thermite.ledger.place import WriterLock
from thermite.report.selftest import selftest_lines
from thermite.schema import event as e
from thermite.schema.contract import Contract

QUESTION = Question(["small"], "speed", None, 0.03)


class Seen(NamedTuple):
    """What one full selftest and a short one after it left behind."""

    life: Life
    recorder: Recorder
    full: e.RigSelftest
    short: e.RigSelftest


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Seen:
    life = Life(Home(tmp_path_factory.mktemp("rig"), {"ms": 40}, {"a": {"ms": 30}}))
    kit, recorder = life.home.folder / "kit", Recorder()
    (kit / "candidates" / "base").mkdir(parents=True)
    (kit / "candidates" / "base" / "program.json").write_text(json.dumps({"ms": 40}))
    judge = LocalJudge(life.bench, kit, "tiny")
    full = full_selftest(judge, KIT, program_of(kit), QUESTION, recorder, count=45)
    short = judge.selftest(judge.commit(program_of(kit)), QUESTION.contract(KIT, judge))
    return Seen(life, recorder, full, short)


def test_it_is_an_event_and_the_rig_knows_what_it_sees(seen: Seen) -> None:
    found = seen.full
    assert (found.mode, found.grade, len(found.blocks)) == ("full", "quiet", 45)
    assert found.sees is not None
    assert 0.03 <= found.sees < 0.04
    assert f"this rig, graded quiet, sees ≥ {100 * found.sees:.1f} %" in selftest_lines(found)


def test_a_short_selftest_later_does_not_forget_what_the_full_one_saw(seen: Seen) -> None:
    state = seen.life.book.state
    assert (seen.short.mode, seen.short.sees, state.selftest) == ("short", None, seen.short)
    assert (state.sees, state.full_selftest) == (seen.full.sees, seen.full)
    assert state.unfit is None


def test_its_runs_are_noise_that_the_simulation_reads(seen: Seen, tmp_path: Path) -> None:
    file = tmp_path / "noise.json"
    setting = Setting(processors=16, load=0.2, is_realtime=True)
    assert seen.recorder.write(file, described(seen.full, KIT, ["small"], setting))
    noise = read_recording(file.read_bytes())
    assert len(noise.t_ns) >= 80
    assert noise.what.startswith(
        "kit tiny, cells small, both arms the same program; real-time runs; 16 processors at load"
        " 0.2; graded quiet; "
    )
    assert callable(resampled(noise))
    with pytest.raises(UsageError, match="can't be written: File exists"):
        seen.recorder.write(file, "again")


def test_cells_of_different_length_are_one_noise(tmp_path: Path) -> None:
    recorder = Recorder()
    recorder._runs = [("a", 1000 + n) for n in range(30)] + [("b", 9000 + 9 * n) for n in range(30)]
    assert recorder.write(tmp_path / "n.json", "two cells")
    times = read_recording((tmp_path / "n.json").read_bytes()).t_ns
    assert times[30:] == pytest.approx(times[:30], abs=1)


def test_too_few_runs_are_no_noise(tmp_path: Path) -> None:
    assert not Recorder().write(tmp_path / "n.json", "nothing")
    assert not (tmp_path / "n.json").exists()


def state_after(*found: e.RigSelftest) -> State:
    state = State()
    for seq, data in enumerate(found, 1):
        envelope = e.ENVELOPES["rig_selftest"](
            id=f"{seq:032x}",
            assignment=None,
            lane=None,
            actor="judge",
            at="2026-01-01T00:00:00Z",
            boot="b",
            mono_ns=seq,
            cause=None,
            command=None,
            data=data,
        )
        fold(state, seq, envelope)
    return state


@pytest.mark.parametrize(
    ("changed", "unfit"),
    [
        pytest.param({"biased": True}, "biased", id="biased"),
        pytest.param({"insensitive": True}, "insensitive", id="insensitive"),
        pytest.param({"grade": "noisy"}, None, id="noisy informs only"),
    ],
)
def test_only_a_biased_or_insensitive_rig_takes_no_assignment(
    seen: Seen, changed: dict[str, object], unfit: str | None
) -> None:
    found = msgspec.structs.replace(seen.full, **changed)
    state = state_after(found)
    assert state.unfit == unfit
    contract = msgspec.json.decode(seen.life.home.raw_contract(), type=Contract)
    if unfit is None:
        check_fitness(contract, state.unfit)
        return
    with pytest.raises(CommandError) as refused:
        check_fitness(contract, state.unfit)
    assert refused.value.code == "rig_unfit"
    assert str(refused.value) == f"this rig's selftest is {unfit}: run thermite rig selftest"


def test_a_later_short_selftest_does_not_make_a_rig_sensitive(seen: Seen) -> None:
    full = msgspec.structs.replace(seen.full, insensitive=True)
    short = msgspec.structs.replace(full, mode="short", insensitive=None)
    assert state_after(full, short).unfit == "insensitive"
    mended = msgspec.structs.replace(full, insensitive=False)
    assert state_after(full, short, mended).unfit is None


def test_a_kit_without_a_program_is_named(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match=r"there is no .*candidates/base: a selftest runs"):
        program_of(tmp_path)


def test_a_file_that_is_there_is_never_overwritten(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "noise.json"
    file.write_text("mine")
    assert run(["rig", "selftest", "--record", str(file)]) == 2
    assert "is there already: name a new file" in capsys.readouterr().err
    assert file.read_text() == "mine"


def test_a_rig_that_is_served_is_left_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "ledger.db").touch()
    lock = WriterLock(tmp_path / "ledger.db")
    assert run(["rig", "selftest", "--state", str(tmp_path)]) == 1
    assert "only one process may, so end that one first" in capsys.readouterr().err
    lock.release()
