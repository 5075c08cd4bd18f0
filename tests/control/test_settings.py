"""Settings: a misspelt key is named with the nearest one; no file is no settings."""

import pytest

from thermite.control.home import ControlHome
from thermite.control.settings import (
    McpSetting,
    Settings,
    add_server,
    read_settings,
    remove_server,
)
from thermite.errors import UsageError


def test_no_file_is_no_settings(home: ControlHome) -> None:
    assert read_settings(home) == Settings()


def test_servers_are_read(home: ControlHome) -> None:
    home.settings.write_text('[mcp.a]\n[mcp.b]\nurl = "https://b"\n', encoding="utf-8")
    assert read_settings(home).mcp == {"a": McpSetting(), "b": McpSetting(url="https://b")}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param("[mpc.a]\n", "'mpc', which is no setting: mcp is one", id="misspelt"),
        pytest.param("[mcp.a]\nulr = 'x'\n", "unknown field `ulr`", id="misspelt below"),
        pytest.param("[mcp.a]\nurl = 7\n", "settings.toml", id="wrong value"),
        pytest.param("[mcp", "is not TOML", id="broken"),
        pytest.param("#" * 300_000, "more than 262144", id="huge"),
    ],
)
def test_wrong_settings_are_named(home: ControlHome, text: str, said: str) -> None:
    home.settings.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError) as caught:
        read_settings(home)
    assert said in str(caught.value)


WRITTEN = """\
# ours since May
[mcp.a]  # the first
url = "https://a"

[mcp.a.headers]
Authorization = "a-token"

[ mcp . "b" ]
headers = { X = "b-token" }
"""


def test_an_edit_leaves_the_rest_as_a_person_wrote_it(home: ControlHome) -> None:
    home.settings.write_text(WRITTEN, encoding="utf-8")
    add_server(home, "c", McpSetting(url="https://c"))
    added = home.settings.read_text(encoding="utf-8")
    assert added == WRITTEN + '\n[mcp.c]\nurl = "https://c"\n'
    remove_server(home, "a")
    assert list(read_settings(home).mcp) == ["b", "c"]
    assert home.settings.read_text(encoding="utf-8").startswith("# ours since May\n[ mcp")
    remove_server(home, "b")
    remove_server(home, "c")
    assert read_settings(home) == Settings()
    assert home.settings.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    "text", ['mcp = { a = { url = "https://a" } }\n', '[mcp]\na = { url = "https://a" }\n']
)
def test_a_form_that_is_not_edited_by_lines_is_left_alone(home: ControlHome, text: str) -> None:
    home.settings.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match="by hand"):
        remove_server(home, "a")
    assert home.settings.read_text(encoding="utf-8") == text
