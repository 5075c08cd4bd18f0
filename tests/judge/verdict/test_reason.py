"""Reasons: the forms of the page "Kit manifest", and D29 to D35 of the kit requirements."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.requirement import shows
from thermite.judge.verdict import reason


@pytest.mark.parametrize(
    ("length", "budget", "kept"),
    [
        pytest.param(2000, 2000, "a" * 2000, id="K-160-at the budget"),
        pytest.param(2001, 2000, "a" * 500 + "…" + "a" * 1500, id="K-160-one over"),
        pytest.param(5000, 4000, "a" * 1000 + "…" + "a" * 3000, id="K-162-verdict"),
        pytest.param(5000, 1200, "a" * 300 + "…" + "a" * 900, id="K-163-brief"),
        pytest.param(5000, 600, "a" * 150 + "…" + "a" * 450, id="goal"),
    ],
)
@shows("D29", "D30")
def test_a_text_over_its_budget_keeps_both_ends(length: int, budget: int, kept: str) -> None:
    assert reason.shorten("a" * length, budget) == kept


@given(st.text(max_size=60), st.sampled_from([4, 8, 20, 40]))
def test_shortening_twice_changes_nothing_more(text: str, budget: int) -> None:
    once = reason.shorten(text, budget)
    assert reason.shorten(once, budget) == once
    assert len(once) <= budget + 1


@given(st.text())
def test_escaping_twice_changes_nothing_more(text: str) -> None:
    once = reason.escape(text)
    assert reason.escape(once) == once


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        pytest.param(b"\x1b[31mred", r"\x1b[31mred", id="colour"),
        pytest.param(b"a\x00b\x07", r"a\x00b\x07", id="NUL and bell"),
        pytest.param("\u202egnp".encode(), r"\u202egnp", id="bidi override"),
        pytest.param("\u2028x".encode(), r"\u2028x", id="line separator"),
        pytest.param(b"one\n\ttwo \n\n", "one\n\ttwo", id="lines stay, the end is trimmed"),
        pytest.param(b"\xffabc\xc3", "\ufffdabc\ufffd", id="not UTF-8"),
        pytest.param("ünïcode 測".encode(), "ünïcode 測", id="other scripts stay"),
    ],
)
def test_what_a_terminal_obeys_is_made_visible(raw: bytes, text: str) -> None:
    assert reason.printed(raw) == text


@pytest.mark.parametrize(
    ("made", "text"),
    [
        pytest.param(reason.run_killed("timeout"), "killed: timeout", id="time"),
        pytest.param(reason.run_killed("memory"), "killed: memory", id="memory"),
        pytest.param(reason.run_exited(3, b"boom\n"), "exit 3: boom", id="exit"),
        pytest.param(reason.run_exited(137, b""), "exit 137:", id="D35-silent, no blank"),
        pytest.param(
            reason.run_exited(3, b"caf\xe9 \xff\n \n"),
            "exit 3: caf\ufffd \ufffd",
            id="D35-no UTF-8",
        ),
        pytest.param(
            reason.run_outputs_refused(["out/a is a symbolic link", "out/b is a socket"]),
            "outputs refused: out/a is a symbolic link; out/b is a socket",
            id="outputs",
        ),
        pytest.param(reason.implausible(["x is inf"]), "implausible: x is inf", id="driver"),
        pytest.param(reason.check_failed(["a", "b"]), "a; b", id="check"),
        pytest.param(reason.check_failed([]), "check failed", id="check without a word"),
        pytest.param(
            reason.no_result(1, b"Traceback\n"),
            "check produced no result (exit 1): Traceback",
            id="no result",
        ),
        pytest.param(
            reason.value_missing("accuracy", '"0.9"'),
            'the check reported no accuracy above zero (got "0.9")',
            id="no value",
        ),
        pytest.param(
            reason.build_failed(2, b"x.c:1: error\n"),
            "build: build failed (exit 2)\nx.c:1: error",
            id="build",
        ),
        pytest.param(
            reason.build_failed(2, b"\n "), "build: build failed (exit 2)", id="D33-silent"
        ),
        pytest.param(
            reason.build_outputs_missing(["out/a", "out/b"], b"ok"),
            "build: build outputs missing: out/a, out/b\nok",
            id="D32-missing",
        ),
        pytest.param(
            reason.build_killed("disk", b""), "build: build killed (disk)", id="build killed"
        ),
        pytest.param(
            reason.build_outputs_refused(["p", "q"], b""),
            "build: build outputs refused: p; q",
            id="build refused",
        ),
        pytest.param(
            reason.source_refused(["holds .kit"]),
            "build: source refused: holds .kit",
            id="source",
        ),
    ],
)
@shows("K-154", "K-155")
def test_reasons_have_the_documents_forms(made: str, text: str) -> None:
    assert made == text


@shows("K-165", "D33")
def test_a_builds_log_keeps_its_last_1500_characters_whole() -> None:
    log = b"first" + b"x" * 5000 + b"last"
    made = reason.build_failed(1, log)
    assert made == "build: build failed (exit 1)\n" + "x" * 1496 + "last"


def test_a_builds_reason_passes_a_verdict_unchanged() -> None:
    made = reason.build_outputs_refused(["p" * 9000], b"x" * 9000)
    assert reason.joined_reasons([made], reason.VERDICT_BUDGET) == [made]


@shows("K-160")
def test_a_long_runs_reason_keeps_2000_characters() -> None:
    made = reason.run_exited(1, b"e" * 9000)
    assert len(made) == 2001
    assert made.startswith("exit 1: eee")


@shows("K-162", "D31")
def test_too_many_reasons_become_one_text() -> None:
    kept = reason.joined_reasons(["a" * 2000, "b" * 2000, "c" * 2000], reason.VERDICT_BUDGET)
    assert [len(text) for text in kept] == [4001]
    assert kept[0].startswith("a" * 1000 + "…")
    assert reason.joined_reasons(["a", "b"], reason.VERDICT_BUDGET) == ["a", "b"]
