"""Whatever is written on the command line: a usage error in words at once, or good for its use."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest

from tests.cli.tree import BY_PATH, LEAVES
from thermite.cli.arguments import (
    FRACTION,
    PATH,
    SECONDS,
    FilePath,
    Limit,
    Names,
    Number,
    Place,
    Text,
    Whole,
)
from thermite.cli.root import run

OURS = (Text, Place, FilePath, Number, Whole, Limit, Names, click.Choice)
NUMBERS = ["nan", "-nan", "inf", "-inf", "1e400", "-1", "9" * 5000, "1_0", "٣", " 1", "0x1", "1,5"]
NOT_UTF8 = os.fsdecode(b"caf\xe9")


def parameters() -> Iterator[tuple[tuple[str, ...], click.Parameter]]:
    for path in LEAVES:
        for one in BY_PATH[path].params:
            if not getattr(one, "is_flag", False):
                yield path, one


ALL = list(parameters())
IDS = [f"{' '.join(path)} {one.name}" for path, one in ALL]


def good(kind: "click.ParamType[Any]") -> str:
    """Return a value that a type takes."""
    match kind:
        case click.Choice():
            return str(next(iter(kind.choices)))
        case Number() | Whole():
            return "2"
        case Limit():
            return "attempts=2"
        case FilePath():
            return "."
        case _:
            return "x"


def bad(kind: "click.ParamType[Any]") -> list[str]:
    """Return values that no parameter of a type takes."""
    match kind:
        case Number() | Whole():
            return ["", NOT_UTF8, *NUMBERS]
        case Limit():
            names = ["", "attempts", "=1", "nonsense=1", NOT_UTF8]
            return names + [f"{limit}={n}" for limit in ("wall_s", "tokens") for n in NUMBERS]
        case Names():
            return ["", ",", "a,,b", "a,", NOT_UTF8]
        case Text():
            return ["", " \n", NOT_UTF8]
        case click.Choice():
            return ["", "nonsense", "n" * 100_000]
        case _:
            return [""]


def words(one: click.Parameter, value: str) -> list[str]:
    return [value] if isinstance(one, click.Argument) else [one.opts[0], value]


def command_line(path: tuple[str, ...], wrong: click.Parameter, value: str) -> list[str]:
    """Return a command line with one wrong value, and good ones where they must be."""
    options: list[str] = []
    arguments: list[str] = []
    for one in BY_PATH[path].params:
        if one is not wrong and not one.required:
            continue
        said = words(one, value if one is wrong else good(one.type))
        (arguments if isinstance(one, click.Argument) else options).extend(said)
    return [*options, "--", *arguments]


def test_there_are_parameters() -> None:
    assert len(ALL) > 100


@pytest.mark.parametrize(("path", "one"), ALL, ids=IDS)
def test_every_parameter_is_of_a_type_that_refuses_what_is_none(
    path: tuple[str, ...], one: click.Parameter
) -> None:
    assert isinstance(one.type, OURS), f"{path} {one.name}: take a type of thermite.cli.arguments"


@pytest.mark.parametrize(("path", "one"), ALL, ids=IDS)
def test_a_wrong_value_is_a_usage_error_that_names_it(
    path: tuple[str, ...], one: click.Parameter
) -> None:
    for value in bad(one.type):
        with pytest.raises(click.BadParameter) as error:
            BY_PATH[path].make_context("thermite", command_line(path, one, value))
        assert error.value.param is one, value


def test_a_usage_error_is_one_bounded_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["watch", "--until", "n" * 100_000]) == 2
    out, err = capsys.readouterr()
    assert (out, len(err.splitlines())) == ("", 1)
    assert err.startswith("error: invalid value for '--until': 'nnn")
    assert err.endswith("…: see thermite watch --help\n")
    assert len(err) < 2000


@pytest.mark.parametrize(
    ("kind", "value", "found"),
    [
        pytest.param(FRACTION, "0.02", 0.02, id="a fraction"),
        pytest.param(FRACTION, "1e-3", 0.001, id="an exponent"),
        pytest.param(FRACTION, ".5", 0.5, id="no zero before the point"),
        pytest.param(SECONDS, "0", 0.0, id="no time at all"),
        pytest.param(SECONDS, "31622400", 366 * 86400.0, id="a year"),
        pytest.param(Whole(1), "9007199254740991", 2**53 - 1, id="the largest that JSON has"),
        pytest.param(Limit(), "usd=2.5", ("usd", 2.5), id="a limit"),
        pytest.param(Limit(), "attempts=80", ("attempts", 80), id="a limit in whole numbers"),
        pytest.param(Names(), "even,odd", ("even", "odd"), id="names"),
        pytest.param(Text(3), "äöü", "äöü", id="characters, not bytes"),
        pytest.param(Place(), NOT_UTF8, NOT_UTF8, id="a path of any bytes"),
        pytest.param(PATH, NOT_UTF8, Path(NOT_UTF8), id="such a path as a path"),
    ],
)
def test_a_good_value_is_taken(kind: "click.ParamType[Any]", value: str, found: object) -> None:
    assert kind.convert(value, None, None) == found


@pytest.mark.parametrize(
    ("kind", "value", "said"),
    [
        pytest.param(FRACTION, "0", "'0' is not above 0 and at most 10", id="no gain"),
        pytest.param(FRACTION, "nan", "'nan' is no number", id="nan"),
        pytest.param(
            SECONDS, "1e12", "'1e12' is not at least 0 and at most 31622400", id="no clock has it"
        ),
        pytest.param(Whole(0), "1.5", "'1.5' is no whole number from 0 to", id="a part"),
        pytest.param(
            Whole(1),
            "9007199254740992",
            "9007199254740992 is not from 1 to",
            id="no JSON",
        ),
        pytest.param(
            Limit(), "attempt=1", "write attempts=80; there are attempts, wall_s", id="misspelt"
        ),
        pytest.param(Limit(), "tokens=1.5", "'1.5' is no whole number", id="part of a token"),
        pytest.param(Text(3), "four", "it has 4 characters, and at most 3 are taken", id="long"),
        pytest.param(Text(), NOT_UTF8, r"'caf\udce9' is not UTF-8", id="other bytes"),
        pytest.param(Whole(0), "n" * 100_000, f"'{'n' * 60}…' is no whole number", id="a flood"),
    ],
)
def test_a_refusal_says_which_value_against_which(
    kind: "click.ParamType[Any]", value: str, said: str
) -> None:
    with pytest.raises(click.BadParameter) as error:
        kind.convert(value, None, None)
    assert said in error.value.message


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        pytest.param(["extend", "4f", "usd=1", "usd=2"], "a limit is there twice", id="twice"),
        pytest.param(["steer", "4f", "x" * 2001], "at most 2000 are taken", id="a long note"),
        pytest.param(["review", "4f", "1", "g", "met", "x" * 2001], "at most 2000", id="a reason"),
    ],
)
def test_an_order_that_no_rig_takes_is_not_signed(
    argv: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home = ["--rig", "bench", "--data", str(tmp_path / "control")]
    assert run(["campaign", argv[0], *home, *argv[1:]]) == 2
    assert said in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
