"""`thermite settings mcp`, and what it changes for a kit that names a server."""

from pathlib import Path

import pytest

from tests.cli.operator_desk import Desk
from tests.control.desk import kit_files, write
from tests.requirement import shows
from thermite.control.key_files import read_key
from thermite.schema.command import AssignBody

GBRAIN = {
    "name": "gbrain",
    "url": "https://mcp.example.org/brain",
    "headers": {"Authorization": "gbrain-token"},
}
NAMES = {"mcp_servers": [{"name": "gbrain", "agents": ["workers"]}]}


def add(desk: Desk, *more: str) -> dict[str, object]:
    url = ("--url", "https://mcp.example.org/brain", "--header", "Authorization=gbrain-token")
    return desk.told("settings", "mcp", "add", "gbrain", *url, *more)


def test_a_server_is_added_listed_and_removed(desk: Desk) -> None:
    assert desk.told("settings", "mcp") == {"mcp": []}
    assert add(desk) == GBRAIN
    local: dict[str, object] = {"name": "local", "url": None, "headers": {}}
    assert desk.told("settings", "mcp", "add", "local") == local
    assert desk.told("settings", "mcp", "list") == {"mcp": [GBRAIN, local]}
    assert "gbrain-token" in desk.run("settings", "mcp").stdout
    assert desk.told("settings", "mcp", "remove", "gbrain") == {"name": "gbrain"}
    assert desk.told("settings", "mcp") == {"mcp": [local]}


@shows("K-076", "K-077")
def test_a_kit_is_signed_once_settings_has_the_server_that_it_names(desk: Desk) -> None:
    write(desk.folder / "kit", kit_files(**NAMES))
    refused = desk.assign(code=4)
    assert refused["error"].startswith("The kit names the MCP server gbrain, and Settings has no")
    assert desk.rig.dropped(".cmd.json") == []
    add(desk)
    desk.assign()
    key = read_key(desk.folder / "control" / "keys" / "command.key", lambda _: b"")
    body = desk.rig.opened(key).body
    assert isinstance(body, AssignBody)
    assert [(server.name, server.agents) for server in body.mcp_servers] == [
        ("gbrain", ["workers"])
    ]
    assert [provider.url for provider in body.providers.mcp] == [GBRAIN["url"]]
    desk.told("settings", "mcp", "remove", "gbrain")
    assert desk.assign(code=4)["error"] == refused["error"]


@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        pytest.param(("add", "a_b"), 2, "is no name for an MCP server", id="name"),
        pytest.param(("add", "a", "--url", "ftp://x"), 2, "is no address", id="address"),
        pytest.param(
            ("add", "a", "--url", "https://me:pw@x"), 2, "without a user or password", id="password"
        ),
        pytest.param(("add", "a", "--header", "A=b"), 2, "give --url too", id="header alone"),
        pytest.param(
            ("add", "a", "--url", "https://x", "--header", "A"), 2, "has no =", id="no secret"
        ),
        pytest.param(
            ("add", "a", "--url", "https://x", "--header", "A=Bearer 1 2"),
            2,
            "the rig keeps the secret itself",
            id="a secret itself",
        ),
        pytest.param(("remove", "a"), 3, "it has none", id="not there"),
    ],
)
def test_what_is_no_server_is_refused_in_words(
    desk: Desk, args: tuple[str, ...], code: int, said: str
) -> None:
    told = desk.told("settings", "mcp", *args, code=code)
    assert said in told["error"]
    assert not (desk.folder / "control" / "settings.toml").exists()


def test_a_name_that_is_taken_stays_as_it_is(desk: Desk) -> None:
    add(desk)
    told = desk.told("settings", "mcp", "add", "gbrain", code=2)
    assert "mcp remove gbrain" in told["error"]
    assert desk.told("settings", "mcp") == {"mcp": [GBRAIN]}


def test_the_name_of_an_access_is_added_listed_and_removed(desk: Desk) -> None:
    work = {"name": "work", "for": "https://git.example.org/team"}
    assert desk.told("settings", "access") == {"accesses": []}
    assert desk.told("settings", "access", "add", "work", "--for", str(work["for"])) == work
    assert desk.told("settings", "access", "add", "any") == {"name": "any", "for": None}
    add(desk)
    assert desk.run("settings", "access").stdout == (
        "work  for https://git.example.org/team\nany  for any address\n"
    )
    again = desk.run("settings", "access", "add", "work")
    assert again.returncode == 2
    assert "thermite settings access remove work" in again.stderr
    assert desk.told("settings", "access", "remove", "work") == {"name": "work"}
    assert desk.told("settings", "mcp") == {"mcp": [GBRAIN]}
    gone = desk.run("settings", "access", "remove", "work")
    assert gone.returncode == 3
    assert "it has any" in gone.stderr


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (("--access", "work"), "--access is for --kit-source"),
        (("--kit-source", "kit", "--access", "work"), "give the address"),
        (("--kit-source", "https://a.example/k", "--access", "other"), "has no access 'other'"),
        (("--kit-source", "https://b.example/k", "--access", "work"), "is for https://a.example"),
        (("--kit-source", "https://me@a.example/k"), "user or password"),
        (("--kit-source", "control", "--access", "work"), "belongs to a git source"),
    ],
)
def test_a_source_that_could_not_be_fetched_is_not_signed(
    desk: Desk, given: tuple[str, ...], says: str
) -> None:
    desk.told("settings", "access", "add", "work", "--for", "https://a.example")
    assert says in desk.assign(*given, code=2)["error"]
    assert desk.rig.dropped("") == []


@shows("K-183")
@pytest.mark.parametrize(
    ("given", "source"),
    [
        (("--kit-source", "control"), {"control": "kits/{}"}),
        (
            ("--kit-source", "https://a.example/k", "--access", "work"),
            {"git": "https://a.example/k", "access": "work"},
        ),
    ],
)
def test_a_kit_that_the_rig_fetches_is_named_and_not_sent(
    desk: Desk, given: tuple[str, ...], source: dict[str, str]
) -> None:
    desk.told("settings", "access", "add", "work")
    told = desk.assign(*given)
    named = told["kit"]["repo"]
    [kit] = [one for one in told["imports"] if one["kind"] == "kit_bundle"]
    assert kit["source"] == {key: text.format(named) for key, text in source.items()}
    assert kit["sha256"] is None
    assert [name for name in desk.rig.dropped(".bundle") if name.name.startswith("kit")] == []


@shows("C11")
def test_settings_show_says_where_each_value_comes_from(desk: Desk, tmp_path: Path) -> None:
    own, project = tmp_path / "own/thermite/config.toml", desk.folder / "thermite.toml"
    own.parent.mkdir(parents=True)
    own.write_text('rig = "own"\nstate = "/own"\nkey = "own.key"\n')
    project.write_text('rig = "project"\nstate = "rig"\n')
    desk.more = {"XDG_CONFIG_HOME": str(tmp_path / "own"), "THERMITE_RIG": "variable"}
    told = desk.told("settings", "show", "--state", "/flag")
    found = {one["name"]: (one["value"], one["from"]) for one in told["settings"]}
    assert found["state"] == ("/flag", "--state")
    assert found["rig"] == ("variable", "THERMITE_RIG")
    assert found["key"] == (str(own.parent / "own.key"), str(own))
    assert found["passphrase_file"] == (None, "default")
    project.write_text('rgi = "project"\n')
    for command in (("settings", "show"), ("settings", "mcp"), ("status",)):
        assert "did you mean rig?" in desk.told(*command, code=2)["error"]


@shows("C11")
def test_a_command_uses_what_the_projects_file_says(desk: Desk) -> None:
    (desk.folder / "thermite.toml").write_text('rig = "bench"\nstate = "rig"\n')
    asked = ("assign", "project/contract.json", "--kit", "kit", "--dry-run")
    assert "rig" in desk.told(*asked)
    assert "there is no rig 'nowhere'" in desk.told(*asked, "--rig", "nowhere", code=3)["error"]
    (desk.folder / "thermite.toml").unlink()
    assert "Missing option" in desk.told(*asked, code=2)["error"].capitalize()
