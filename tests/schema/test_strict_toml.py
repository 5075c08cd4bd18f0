"""TOML is read whole or refused in words, wherever a person or a stranger wrote it."""

from pathlib import Path

import pytest

from thermite.cli.root import run
from thermite.schema.strict_toml import NotToml, read_toml

LONG = "0x" + "f" * 20_000
HOSTILE = {
    "digits": ("x = " + "9" * 5000, "a whole number has more than 4300 digits"),
    "hexadecimal digits": (f"x = {LONG}", "a whole number has more than 4300 digits"),
    "digits below": (f"[[x]]\ny = [{{ z = -{'9' * 4301} }}]", "more than 4300 digits"),
    "lists": ("x = " + "[" * 9000 + "]" * 9000, "nested too deeply"),
    "tables": ("[" + "a." * 5000 + "a]", "nested more than 32 levels deep"),
    "no text": ("x = '\udcff'", "byte 5 is not UTF-8"),
    "no TOML": ("x", "Expected"),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_what_can_not_be_used_is_said_in_words(what: str) -> None:
    text, words = HOSTILE[what]
    with pytest.raises(NotToml, match=words):
        read_toml(text.encode("utf-8", "surrogateescape"))


def test_what_can_be_used_is_read() -> None:
    longest = "9" * 4300
    assert read_toml(f"x = {longest}\n[a]\nb = [[1], 0xff]".encode()) == {
        "x": int(longest),
        "a": {"b": [[1], 255]},
    }


@pytest.mark.parametrize("what", [name for name in HOSTILE if name != "no TOML"])
@pytest.mark.parametrize(
    ("file", "words"),
    [
        pytest.param("rig.toml", ("rig", "selftest", "--state", "."), id="rig"),
        pytest.param("settings.toml", ("settings", "mcp", "list", "--data", "."), id="settings"),
        pytest.param("rigs.toml", ("rig", "list", "--data", "."), id="known rigs"),
        pytest.param("thermite.toml", ("settings", "show"), id="configuration"),
        pytest.param(
            "contract.toml",
            ("judge", ".", "--kit", "smoke-cpu", "--contract", "contract.toml"),
            id="contract",
        ),
    ],
)
def test_each_file_that_is_toml_is_read_so(
    file: str,
    words: tuple[str, ...],
    what: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(file).write_bytes(HOSTILE[what][0].encode("utf-8", "surrogateescape"))
    assert run(words) in {2, 4}
    said = capsys.readouterr().err
    assert file in said
    assert HOSTILE[what][1].replace("32", "29") in said.replace("32", "29")
    assert len(said) < 1000
