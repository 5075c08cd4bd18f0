"""The check's last line: what can be read in two ways is no result."""

import pytest

from tests.requirement import shows
from thermite.judge.check.result import CheckResult, read_result

GOOD = b'{"pass": true}'


@pytest.mark.parametrize(
    "stdout",
    [
        pytest.param(GOOD, id="no line end"),
        pytest.param(GOOD + b"\n", id="line end"),
        pytest.param(GOOD + b"\r\n", id="CR LF"),
        pytest.param(b"looking\n\n" + GOOD + b"\n\n  \n\t\n", id="blank lines after"),
        pytest.param(b'{"pass": false}\n' + GOOD, id="the last one counts"),
        pytest.param(b"\xff\x00 anything\n" + GOOD, id="anything before"),
        pytest.param(b"  " + GOOD + b"  ", id="blanks around"),
        pytest.param(b"x" * 65_000 + b"\n" + GOOD, id="after a long line"),
    ],
)
@shows("K-140")
def test_the_last_line_is_the_result(stdout: bytes) -> None:
    assert read_result(stdout) == CheckResult(passed=True, reasons=[], fields={})


@pytest.mark.parametrize(
    "stdout",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"\n \n", id="blank"),
        pytest.param(b"passed", id="text"),
        pytest.param(b'{\n"pass": true\n}', id="pretty-printed"),
        pytest.param(b"[true]", id="D36-no object"),
        pytest.param(b'{"pass": true, "pass": true}', id="D48-twice"),
        pytest.param(b'{"pass": true, "x": NaN}', id="D48-NaN"),
        pytest.param(b'\xef\xbb\xbf{"pass": true}', id="byte order mark"),
        pytest.param(b'{"pass": true, "x": "\xff"}', id="not UTF-8"),
        pytest.param(b'{"pass": true, "x": "\\ud800"}', id="lone surrogate"),
        pytest.param(b'{"pass": true} {"pass": true}', id="two values"),
        pytest.param('no\u2028{"pass": true}'.encode(), id="D47-U+2028 ends no line"),
        pytest.param(b'no\x0b{"pass": true}', id="a vertical tab ends no line"),
        pytest.param('no\u0085{"pass": true}'.encode(), id="U+0085 ends no line"),
        pytest.param(b"[" * 5000, id="endless nesting"),
        pytest.param(b'{"x": ' + b"[" * 70 + b"]" * 70 + b"}", id="65 levels"),
        pytest.param(b'{"pass": true, "n": ' + b"9" * 5000 + b"}", id="5,000 digits"),
        pytest.param(GOOD.rjust(64 << 10), id="D49-a line whose beginning is lost"),
    ],
)
@shows("K-144")
def test_anything_else_is_no_result(stdout: bytes) -> None:
    assert read_result(stdout) is None


@pytest.mark.parametrize(
    "said",
    [b"1", b'"true"', b"null", b"[]", b"1.0", b"false"],
)
@shows("K-141")
def test_only_true_itself_passes(said: bytes) -> None:
    found = read_result(b'{"pass": ' + said + b"}")
    assert found is not None
    assert not found.passed


@pytest.mark.parametrize(
    ("said", "reasons"),
    [
        pytest.param(b'["a", "b"]', ["a", "b"], id="texts"),
        pytest.param(b'"a"', ["a"], id="one text is one reason"),
        pytest.param(b'[1, {"row": 3}, null]', ["1", '{"row":3}', "null"], id="compact JSON"),
        pytest.param(b'["", " ", "a"]', ["a"], id="blank ones are dropped"),
        pytest.param(b"7", [], id="other types are ignored"),
        pytest.param(b'{"a": 1}', [], id="an object is ignored"),
        pytest.param(b"null", [], id="null"),
    ],
)
@shows("K-142", "D51")
def test_reasons_are_a_list_of_texts(said: bytes, reasons: list[str]) -> None:
    found = read_result(b'{"pass": false, "reasons": ' + said + b"}")
    assert found is not None
    assert found.reasons == reasons


@shows("K-143")
def test_all_else_are_fields() -> None:
    found = read_result(b'{"acc": 0.5, "pass": true, "reasons": [], "note": "x"}')
    assert found is not None
    assert found.fields == {"acc": 0.5, "note": "x"}
