"""Strict JSON: one text, one meaning, and a refusal in words for everything else."""

import pytest

from thermite.schema.strict_json import NotStrictJson, read

MIB = 1 << 20


def refusal(raw: bytes, *, most_bytes: int = MIB, most_levels: int = 64) -> str:
    with pytest.raises(NotStrictJson) as caught:
        read(raw, most_bytes=most_bytes, most_levels=most_levels)
    return str(caught.value)


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        pytest.param(
            b'{"a": [1, 2.5, "x", true, null]}', {"a": [1, 2.5, "x", True, None]}, id="D01-object"
        ),
        pytest.param(b" \r\n\t1 \n", 1, id="D01-white-space"),
        pytest.param('"é\\u00e9\\ud83d\\ude00"'.encode(), "éé😀", id="D01-surrogate-pair"),
        pytest.param(b"10000000000000000000000000", 10**25, id="D38-all-digits"),
        pytest.param(b"1e999", float("inf"), id="D09-beyond-floating-point"),
        pytest.param(b"[[[]]]", [[[]]], id="D01-three-levels"),
        pytest.param(
            b'{"a": {"x": 1}, "b": {"x": 2}}',
            {"a": {"x": 1}, "b": {"x": 2}},
            id="D01-same-name-in-two",
        ),
    ],
)
def test_one_value_is_read_as_every_reader_reads_it(raw: bytes, value: object) -> None:
    assert read(raw, most_bytes=MIB, most_levels=3) == value


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        pytest.param(b"", "is empty", id="D01-empty"),
        pytest.param(b" \n", "is empty", id="D01-blank"),
        pytest.param(b'\xef\xbb\xbf{"a": 1}\r\n', "starts with a byte-order mark", id="C3-D01-bom"),
        pytest.param('{"a": 1}'.encode("utf-16"), "is UTF-16", id="C3-utf-16"),
        pytest.param('{"a": 1}'.encode("utf-16-le"), "NUL byte", id="C3-utf-16-without-mark"),
        pytest.param('{"a": 1}'.encode("utf-32"), "is UTF-32", id="C3-utf-32"),
        pytest.param(b'{"a": "\xff"}', "byte 7 is not UTF-8", id="D01-not-utf-8"),
        pytest.param(b'"\xed\xa0\x80"', "byte 1 is not UTF-8", id="D01-surrogate-in-utf-8"),
        pytest.param(b'{"a": 1, "a": 2}', 'the name "a" stands twice', id="D01-duplicate"),
        pytest.param(
            b'{"a": 1, "\\u0061": 2}', 'the name "a" stands twice', id="D01-duplicate-by-escape"
        ),
        pytest.param(b'[{"b": {"a": 1, "a": 1}}]', "stands twice", id="D01-duplicate-deep"),
        pytest.param(b'{"b": 1, "a": 1, "a": 1}', 'the name "a" stands', id="D01-duplicate-later"),
        pytest.param(b"[NaN]", "NaN is not a JSON number", id="D01-nan"),
        pytest.param(b"-Infinity", "-Infinity is not a JSON number", id="D01-infinity"),
        pytest.param(b'["\\ud800"]', "\\ud800, one half", id="D01-lone-surrogate"),
        pytest.param(b'{"\\udc00x": 1}', "\\udc00, one half", id="D01-lone-surrogate-in-a-name"),
        pytest.param(b'["\\ude00\\ud83d"]', "one half", id="D01-surrogates-swapped"),
        pytest.param(b"{} {}", "more than one value", id="D01-two-values"),
        pytest.param(b"{} // x", "more than one value", id="D01-comment"),
        pytest.param(b'{"a": 1,}', "at line 1 column", id="D01-trailing-comma"),
        pytest.param(b'{"a": 1', "at line 1 column", id="D01-cut-off"),
        pytest.param(b'"a\nb"', "at line 1 column", id="D01-raw-line-break"),
        pytest.param(b"01", "more than one value", id="D01-leading-zero"),
        pytest.param(b"'a'", "at line 1 column 1", id="D01-single-quotes"),
        pytest.param("٣".encode(), "at line 1 column 1", id="D05-digits-of-another-script"),
        pytest.param(b"1" * 5000, "an integer of 5000 digits", id="D01-5000-digits"),
        pytest.param(b"[" * 65 + b"]" * 65, "more than 64 levels", id="D01-65-levels"),
        pytest.param(b'{"a":' * 100_000 + b"1" + b"}" * 100_000, "deep", id="D01-100000-levels"),
        pytest.param(b"[" * 100_000, "deep", id="D01-100000-open"),
    ],
)
def test_what_two_readers_could_read_differently_is_refused_in_words(raw: bytes, said: str) -> None:
    assert said in refusal(raw)


def test_64_levels_are_read() -> None:
    assert read(b"[" * 64 + b"]" * 64, most_bytes=MIB, most_levels=64) is not None
    assert read(b"[" * 63 + b"1" + b"]" * 63, most_bytes=MIB, most_levels=63) is not None


def test_a_scalar_at_the_deepest_level_is_no_level() -> None:
    assert read(b"[[1]]", most_bytes=MIB, most_levels=2) == [[1]]
    assert "more than 1 levels" in refusal(b"[[1]]", most_levels=1)


def test_one_byte_too_many_is_refused_before_it_is_decoded() -> None:
    assert read(b"[]   ", most_bytes=5, most_levels=1) == []
    assert refusal(b"\xff" * 6, most_bytes=5) == "6 bytes, and at most 5 are read"


def test_a_long_or_foreign_name_is_shortened_and_escaped() -> None:
    name = "\\u001b" + "x" * 500
    said = refusal(f'{{"{name}": 1, "{name}": 2}}'.encode())
    assert "\x1b" not in said
    assert len(said) < 200
