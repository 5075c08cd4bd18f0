"""A private kit: fetched by a served rig with its access, whose secret then stands nowhere."""

import json
import os
import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crash.sleeper import CONTRACT, lay_out, nap
from tests.requirement import shows
from tests.served import ServedRig, served
from tests.supervisor.forge import Forge
from thermite.schema.access import read_access


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[ServedRig]:
    """A rig with users of its own where it can have them."""
    (tmp_path / "home").mkdir()
    with served(tmp_path / "home") as one:
        yield one


def holders(token: str, folder: Path) -> list[str]:
    """The files below a folder that hold a token."""
    files = (Path(parent, name) for parent, _, names in os.walk(folder) for name in names)
    return [
        str(path.relative_to(folder))
        for path in files
        if path.is_file() and not path.is_symlink() and token.encode() in path.read_bytes()
    ]


@shows("K-183", "K-185")
def test_a_private_kit_comes_by_its_access_and_the_token_stays_where_it_was_put(
    alone: ServedRig, tmp_path: Path
) -> None:
    token = f"canary-{secrets.token_hex(16)}"
    contract = lay_out(
        alone.home,
        base=nap(0.05),
        candidates={"01-wrong": nap(0.05, says="wrong")},
        contract=CONTRACT,
    )
    forge = Forge(alone.home / "control" / "kits", ("bot", token))
    with forge.serving(tmp_path) as pem:
        shown = keep_secret(alone, forge.url, token, pem)
        alone.serve_until_there()
        alone.know()
        there = ("--kit-source", f"{forge.url}/sleeper.git", "--access", "work")
        unknown = alone.run("assign", str(contract), "--kit", "kit", "--rig", "bench", *there)
        assert unknown.returncode == 2
        assert "Settings has no access 'work'" in unknown.stderr
        alone.told("settings", "access", "add", "work", "--for", forge.url)
        told = alone.assign(contract, *there, "--wait")
    assert forge.header in forge.seen
    assert [one["source"] for one in told["imports"] if one["kind"] == "kit_bundle"] == [
        {"git": f"{forge.url}/sleeper.git", "access": "work"}
    ]
    assert told["receipt"]["outcome"] == "accepted"
    alone.until(lambda: alone.assignment is not None and alone.assignment.status == "ended")
    alone.stop()
    assert holders(token, alone.home) == ["rig/access/work.json"]
    assert token not in json.dumps([told, shown])


def keep_secret(rig: ServedRig, url: str, token: str, pem: Path) -> object:
    """Put the secret on the rig as its owner does, and return all that was printed."""
    rig.state_folder.mkdir(mode=0o711)
    state = ("--state", str(rig.state_folder))
    (rig.home.parent / "token").write_text(f"{token}\r\n", encoding="ascii")
    given = ("--secret", str(rig.home.parent / "token"), "--trusted", str(pem), "--user", "bot")
    said = rig.told("rig", "access", "set", "work", "--for", url, *given, *state)
    kept = rig.state_folder / "access" / "work.json"
    assert kept.stat().st_mode & 0o777 == 0o600
    access = read_access(kept.read_bytes())
    assert access is not None
    assert access.secret == token
    assert token not in repr(access)
    listed = rig.told("rig", "access", "list", *state)
    assert listed == {
        "accesses": [{"name": "work", "for": url, "secret": "file", "problem": None}]
    }
    return [said, listed, rig.run("rig", "access", *state).stdout]
