"""The report of a campaign: what it says, in three forms, whatever names it has to print."""

import math
import re
import shutil
import subprocess
from collections.abc import Iterable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.requirement import shows
from thermite.campaign.fold import fold
from thermite.campaign.state import State
from thermite.ledger.replay import recorded
from thermite.report.campaign_report.curve import Scale
from thermite.report.campaign_report.history import Gathered, History, history
from thermite.report.campaign_report.page import page
from thermite.report.campaign_report.text import markdown, plain
from thermite.report.campaign_report.versus import versus
from thermite.schema import event as e

GOLDEN = Path(__file__).parents[1] / "golden"


def folded(ledger: Path) -> tuple[State, list[e.Event]]:
    state, events = State(), []
    for row in recorded(ledger):
        assert row.event is not None
        fold(state, row.seq, row.event)
        events.append(row.event)
    return state, events


def told_of(ledger: Path) -> History:
    state, events = folded(ledger)
    assignment = list(state.assignments.values())[-1]
    return history(state, assignment, gathered(events))


@pytest.fixture(scope="module")
def told() -> History:
    return told_of(GOLDEN / "promotion/ledger.db")


def gathered(events: Iterable[e.Event]) -> Gathered:
    found = Gathered()
    for event in events:
        if event.assignment is not None:
            found.take(event)
    return found


class Reader(HTMLParser):
    """Keeps what a page holds: elements that stay open, addresses, and its words."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert not {"src", "href", "onload", "onclick"} & {name for name, _ in attrs}, tag
        self.tags.append(tag)
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def test_what_the_rig_sees_is_the_word_of_its_last_full_selftest() -> None:
    state, events = folded(GOLDEN / "promotion/ledger.db")
    assert state.selftest is not None
    assert state.selftest.sees is None  # a campaign's own, short one does not look for it
    full = msgspec.structs.replace(state.selftest, mode="full", sees=0.021)
    state.full_selftest = full
    assignment = list(state.assignments.values())[-1]
    told = history(state, assignment, gathered(events))
    assert told.sees == pytest.approx(0.021)
    assert "sees a gain of 2.1 % or more" in plain(told)


def test_a_campaign_is_gathered_whole(told: History) -> None:
    assert (told.kind, told.status, told.verdicts) == (
        "hill_climb",
        "ended",
        {"promoted": 1, "not_better": 1},
    )
    (change,) = told.changes
    assert (change.attempt, change.files) == (1, ["program.json"])
    assert [(one.cell, one.held_out) for one in told.cases] == [("small", False), ("held", True)]
    assert all(one.gain == pytest.approx(0.25, abs=0.01) for one in told.cases)
    assert all(one.start_ms == pytest.approx(100, abs=2) for one in told.cases)
    assert all(one.champion_ms == pytest.approx(80, abs=2) for one in told.cases)
    assert [one.total for one in told.points] == pytest.approx([change.gain] * 2)
    assert told.blocks == 41
    times = {(one.attempt, one.cell): round(one.ms) for one in told.champion_times}
    assert times[1, "small"] == 100
    assert times[2, "small"] == 80  # beside the second attempt the first was champion


@pytest.mark.parametrize("write", [plain, markdown, page])
def test_every_form_says_what_came_of_it(told: History, write: Any) -> None:  # noqa: ANN401
    text = write(told).replace("\\", "")
    assert told.headline in text
    for words in ("01-fast", "02-same", "quiet", "program.json", "held out", "1 not_better"):
        assert words in text


@shows("K-043")
def test_the_page_calls_cells_cases_and_the_texts_do_not(told: History) -> None:
    assert "<h2>Cases</h2>" in page(told)
    assert "<th>case</th>" in page(told)
    assert "Cells, champion over start" in plain(told)
    assert not {"case", "cases"} & set(plain(told).lower().split())


NAMES = st.text(st.characters(codec="utf-8"), max_size=40) | st.sampled_from(
    ["<script>alert(1)</script>", "a|b", "](http://x)", '"><img src=x onerror=y>', "`x`", "&amp;"]
)


@given(name=NAMES)
def test_no_name_becomes_an_element_or_breaks_a_table(told: History, name: str) -> None:
    named = _named(told, name)
    plainly = Reader(page(_named(told, "x")))
    shown = Reader(page(named))
    assert shown.tags == plainly.tags
    assert shown.open == []
    assert len(markdown(named).splitlines()) == len(markdown(_named(told, "x")).splitlines())
    bars = [line.replace("\\|", "").count("|") for line in markdown(named).splitlines()]
    assert sorted(set(bars)) == [0, 6, 7, 8]


@pytest.mark.parametrize(
    "name",
    [
        "https://evil.example/x",
        "WWW.evil.example",
        "me@evil.example",
        "@everybody",
        "x/@org/team.py",
    ],
)
def test_no_name_is_an_address_or_calls_somebody_in_markdown(told: History, name: str) -> None:
    """GitHub makes links of bare addresses, and writes to whom a pull request calls by name."""
    written = markdown(_named(told, name))
    assert not re.search(r"://|www\.|@\w", written, re.IGNORECASE)
    assert name in re.sub(r"<!-- -->|\\", "", written)


def _named(told: History, name: str) -> History:
    replace = msgspec.structs.replace
    return replace(
        told,
        name=name,
        attempts=[replace(one, name=name, reasons=[name]) for one in told.attempts],
        points=[replace(one, name=name) for one in told.points],
        changes=[replace(one, name=name, files=[name], marks=[name]) for one in told.changes],
        cases=[replace(one, cell=name) for one in told.cases],
        champion_times=[replace(one, cell=name) for one in told.champion_times],
    )


def test_many_files_of_one_change_are_counted_and_not_listed(told: History) -> None:
    files = [f"f{number}.c" for number in range(1000)]
    changes = [msgspec.structs.replace(told.changes[0], files=files)]
    text = plain(msgspec.structs.replace(told, changes=changes))
    assert "f19.c and 980 more" in text
    assert "f20.c" not in text


@given(
    across=st.lists(st.integers(0, 10**6), min_size=1, max_size=5),
    up=st.lists(st.floats(-1, 1e9), min_size=1, max_size=5),
)
def test_whatever_is_drawn_lies_on_the_paper(across: list[float], up: list[float]) -> None:
    scale = Scale(across, up, 0.02)
    assert all(64 <= scale.x(value) <= 704 for value in across)
    assert all(16 <= scale.y(value) <= 206 for value in up)
    assert 2 <= len(scale.levels()) <= 11
    assert len(scale.numbers(int(max(across)))) <= 13


@pytest.mark.parametrize(("low", "high"), [(-0.314, 2.472), (-0.388, 2.875)])
def test_a_scale_goes_little_further_than_what_is_drawn(low: float, high: float) -> None:
    """Demos': one attempt lost a third, a champion gained three times that; none lost all."""
    levels = Scale([0, 12], [low, 0.0, high], 0.02).levels()
    assert (levels[0], levels[-1]) == (-0.5, math.ceil(2 * high) / 2)


def test_what_was_never_measured_is_a_cross_below_the_scale(told: History) -> None:
    failed = msgspec.structs.replace(told.points[0], gain=None, interval=None, verdict="invalid")
    points = [failed, *told.points[1:]]
    drawn = page(msgspec.structs.replace(told, points=points))
    (cross,) = re.findall(r'class="none" d="M[\d.]+ ([\d.]+)L[\d.]+ ([\d.]+)M', drawn)
    assert 206 < float(cross[0]) < float(cross[1]) < 225  # the numbers' tops
    lowest = max(float(y) for y in re.findall(r'class="grid" .*? y1="([\d.]+)"', drawn))
    assert lowest == 206


def test_a_campaign_without_attempts_is_a_report_too(told: History) -> None:
    empty = msgspec.structs.replace(
        told, attempts=[], points=[], changes=[], cases=[], champion_times=[], kit=None, verdicts={}
    )
    assert "verdicts: none yet" in plain(empty)
    assert "<svg" not in page(empty)
    assert markdown(empty).startswith("# walk\n")


def test_gains_differ_only_where_the_intervals_do_not_meet(told: History) -> None:
    def other(gain: float, low: float, high: float, **more: object) -> History:
        return msgspec.structs.replace(told, name="b", gain=gain, interval=(low, high), **more)

    assert versus(told, told).said == "no difference was shown: the intervals meet"
    assert versus(told, other(0.4, 0.3, 0.5)).said == "b gained more: the intervals do not meet"
    assert versus(other(0.4, 0.3, 0.5), told).said == "b gained more: the intervals do not meet"
    assert versus(told, other(0.3, 0.2, 0.4)).said.startswith("no difference was shown")
    unmeasured = msgspec.structs.replace(told, gain=None)
    assert versus(told, unmeasured).said.startswith("at least one champion was not measured")
    elsewhere = versus(told, other(0.4, 0.3, 0.5, kit="another 00"))
    assert elsewhere.said == "their gains cannot be compared: another start, kit or target"
    assert elsewhere.warnings == [f"different kits: {told.kit} and another 00"]


def test_only_the_newest_re_anchor_says_where_the_champion_stands() -> None:
    state, events, later = State(), [], []
    for row in recorded(GOLDEN / "promotion/ledger.db"):
        assert row.event is not None
        fold(state, row.seq, row.event)
        events.append(row.event)
        data = row.event.data
        if isinstance(data, e.Run | e.Block) and data.stage == "re_anchor":
            again = msgspec.structs.replace(data, tries=2)
            if isinstance(again, e.Run) and again.record is not None:
                longer = msgspec.structs.replace(again.record, t_ns=2 * again.record.t_ns)
                again = msgspec.structs.replace(again, record=longer)
            later.append(msgspec.structs.replace(row.event, data=again))
    assignment = list(state.assignments.values())[-1]
    told = history(state, assignment, gathered([*events, *later]))
    assert all(one.start_ms == pytest.approx(200, abs=4) for one in told.cases)
    assert told.blocks == 41 + 20


@pytest.mark.skipif(shutil.which("chromium") is None, reason="there is no chromium here")
def test_a_browser_shows_the_page(told: History, tmp_path: Path) -> None:
    """A script that a name brings is text there too."""
    bad = "<script>document.title='run'</script>"
    (tmp_path / "report.html").write_text(page(_named(told, bad)), encoding="utf-8")
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"]
    flags += ["--disable-background-networking", "--disable-component-update", "--disable-sync"]
    flags += [f"--user-data-dir={tmp_path / 'browser'}"]
    shown = subprocess.run(
        ["chromium", *flags, "--dump-dom", f"file://{tmp_path}/report.html"],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    ).stdout
    assert shown.count("<svg") == 2
    assert "<h2>Cases</h2>" in shown
    assert "<title>&lt;script&gt;" in shown
    assert "<script" not in shown
