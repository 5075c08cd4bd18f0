"""Settings: a misspelt key is named with the nearest one; no file is no settings."""

import pytest

from thermite.control.home import ControlHome
from thermite.control.settings import McpSetting, Settings, read_settings
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
