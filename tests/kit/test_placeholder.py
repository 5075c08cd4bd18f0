"""Placeholders and parameter files (K-085 to K-093, D23 to D28)."""

from pathlib import Path

import pytest

from thermite.errors import InfrastructureError
from thermite.kit.placeholder import expand, params_json, params_text
from thermite.schema.kit import Cell

PLACES = {
    "build": Path("/s/build"),
    "params": Path("/s/params.txt"),
    "params_json": Path("/s/params.json"),
    "out": Path("/s/out"),
    "kit": Path("/s/kit"),
    "models": Path("/s/models"),
}


@pytest.mark.parametrize(
    ("arg", "filled"),
    [
        pytest.param("{build}", "/s/build", id="K-088-build"),
        pytest.param("{params}", "/s/params.txt", id="K-089-params"),
        pytest.param("{params_json}", "/s/params.json", id="K-090-params_json"),
        pytest.param("{out}", "/s/out", id="K-091-out"),
        pytest.param("{kit}", "/s/kit", id="K-092-kit"),
        pytest.param(f"{{models:{'a' * 64}}}", f"/s/models/{'a' * 64}", id="K-093-models"),
        pytest.param("{build:out/bench}", "/s/build/out/bench", id="K-086-sub-path"),
        pytest.param("-o={out:a}:{out:b}", "-o=/s/out/a:/s/out/b", id="K-085-inside-an-argument"),
        pytest.param("{build:}", "/s/build", id="D25-empty-sub-path"),
        pytest.param("{build:a b=c:d}", "/s/build/a b=c:d", id="D23-anything-but-braces"),
        pytest.param("{build:..a/...}", "/s/build/..a/...", id="D26-dots-that-do-not-climb"),
        pytest.param("{{out}}", "{/s/out}", id="D24-no-escapes"),
        pytest.param("${out}", "$/s/out", id="D24-dollar"),
        pytest.param("{out}{out}", "/s/out/s/out", id="D24-twice"),
        pytest.param("{Out}", "{Out}", id="D23-upper-case"),
        pytest.param("{}", "{}", id="D23-empty"),
        pytest.param("{1}", "{1}", id="D23-digit-first"),
        pytest.param("{ out }", "{ out }", id="D23-blanks"),
        pytest.param("{a-b}", "{a-b}", id="D23-hyphen"),
        pytest.param('{"a": 1}', '{"a": 1}', id="D23-json"),
        pytest.param("{out", "{out", id="D23-open"),
        pytest.param("", "", id="D07-empty-argument"),
    ],
)
def test_a_placeholder_becomes_its_path_and_nothing_else_changes(arg: str, filled: str) -> None:
    assert expand([arg], PLACES) == [filled]


@pytest.mark.parametrize(
    ("args", "said"),
    [
        pytest.param(["{foo:a}"], "unknown placeholder {foo}", id="K-087-name-only"),
        pytest.param(
            ["x", "{b}{a}", "{c}"], "unknown placeholder {b}", id="D23-first-from-the-left"
        ),
        pytest.param(["{out}{x_1}"], "unknown placeholder {x_1}", id="K-087-after-a-known-one"),
        pytest.param(
            ["{build:../x}"], "placeholder {build:../x} leaves its folder", id="D26-climbs"
        ),
        pytest.param(
            ["{build:a/../b}"], "placeholder {build:a/../b} leaves its folder", id="D26-inner"
        ),
        pytest.param(["{out:/etc}"], "placeholder {out:/etc} leaves its folder", id="D26-absolute"),
    ],
)
def test_what_a_kit_can_t_mean_is_infrastructure(args: list[str], said: str) -> None:
    with pytest.raises(InfrastructureError) as caught:
        expand(args, PLACES)
    assert str(caught.value) == said


def test_D24_a_path_with_braces_is_not_expanded_again() -> None:  # noqa: N802
    assert expand(["{out}/{kit}"], {"out": Path("/{kit}"), "kit": Path("/k")}) == ["/{kit}//k"]


CELL: Cell = {"n": 128, "big": 10**30, "x": 2.5, "tiny": 1e-7, "zero": -0.0, "on": True,
              "off": False, "name": 'é "q" ='}  # fmt: skip


def test_D28_params_text_is_one_plain_line_a_parameter() -> None:  # noqa: N802
    assert params_text(CELL).decode() == (
        "n=128\nbig=1000000000000000000000000000000\nx=2.5\ntiny=1e-07\nzero=-0.0\n"
        'on=true\noff=false\nname=é "q" =\n'
    )
    assert params_text({}) == b""


def test_D28_params_json_is_compact_and_in_order() -> None:  # noqa: N802
    assert (
        params_json({"b": 1, "a": "é", "c": True, "d": 1.5})
        == '{"b":1,"a":"é","c":true,"d":1.5}'.encode()
    )
    assert params_json({}) == b"{}"
