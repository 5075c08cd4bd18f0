"""Secrets on both sides of a real walk: used as they should be, and found nowhere else.

A token, an ssh key, a passphrase and the private keys of rig, coin and operator are planted,
a campaign ends with a promotion, orders and commands fail in the ways that could repeat a
secret, and then every file, every value in a database and every printed word is searched.
"""

import base64
import json
import os
import secrets
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tests.crash.sleeper import BUILD, CHECK, CONTRACT, KIT, lay_out, nap, write
from tests.requirement import shows
from tests.served import ServedRig, served
from tests.supervisor.forge import Forge
from thermite.schema.access import read_access

PASSPHRASE = f"canary-phrase-{secrets.token_hex(12)}"
ALSO = {"judging": {**CONTRACT["judging"], "alpha_campaign": 0.4}}
"""A gain of a factor of two is shown in a few blocks all the same."""


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[ServedRig]:
    """A rig with users of its own where it can have them."""
    (tmp_path / "home").mkdir()
    with served(tmp_path / "home") as one:
        yield one


def packed(raw: bytes) -> set[bytes]:
    """The forms in which bytes could stand in a file: raw, hex, base64 at any place."""
    forms = {raw, raw.hex().encode(), raw.hex().upper().encode()}
    for shift in range(3):
        whole = base64.b64encode(bytes(shift) + raw)
        inner = whole[-(-shift * 8 // 6) : -4]
        forms |= {inner, inner.replace(b"+", b"-").replace(b"/", b"_")}
    return forms


def written(text: str) -> set[bytes]:
    """The forms in which a text could stand in a file."""
    escaped = json.dumps(text)[1:-1]
    return {text.encode(), escaped.encode(), quote(text, safe="").encode(), *packed(text.encode())}


def holders(canaries: Mapping[str, set[bytes]], folder: Path) -> dict[str, set[str]]:
    """The files below a folder that hold a form of each canary; databases by value, too."""
    found: dict[str, set[str]] = {name: set() for name in canaries}
    for parent, _, names in os.walk(folder):
        for path in (Path(parent, name) for name in names):
            if path.is_symlink() or not path.is_file():
                continue
            raw = path.read_bytes() + str(path).encode()
            if raw.startswith(b"SQLite format 3\0"):
                raw += values(path)
            for name, forms in canaries.items():
                if any(form in raw for form in forms):
                    found[name].add(str(path.relative_to(folder)))
    return found


def values(database: Path) -> bytes:
    """All that the tables of a database hold: on disk a value may be cut into pages."""
    with closing(sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True)) as file:
        query = "SELECT name FROM sqlite_schema WHERE type = 'table'"
        names = [name for (name,) in file.execute(query)]
        rows = [row for name in names for row in file.execute(f'SELECT * FROM "{name}"')]
    cells = [cell for row in rows for cell in row]
    return b"\n".join(cell if isinstance(cell, bytes) else str(cell).encode() for cell in cells)


@shows("K-183", "K-185")
def test_no_secret_of_a_walk_stands_anywhere_but_where_it_was_put(
    alone: ServedRig, tmp_path: Path
) -> None:
    token = f"canary-{secrets.token_hex(16)}"
    contract = lay_out(
        alone.home,
        base=nap(0.1),
        candidates={"01-wrong": nap(0.05, says="wrong"), "02-quick": nap(0.01)},
        contract=CONTRACT | ALSO,
    )
    forge = Forge(alone.home / "control" / "kits", ("bot", token), refusal="no: {token}")
    shown: list[str] = []
    ssh = ssh_key()
    with forge.serving(tmp_path) as pem:
        keep_secret(alone, forge.url, token, pem, shown)
        keep_key(alone, ssh)
        alone.serve_until_there()
        alone.know()
        sealed = sealed_key(alone, shown)
        there = ("--kit-source", f"{forge.url}/sleeper.git", "--access", "work")
        unknown = alone.run("assign", str(contract), "--kit", "kit", "--rig", "bench", *there)
        assert unknown.returncode == 2
        assert "Settings has no access 'work'" in unknown.stderr
        alone.told("settings", "access", "add", "work", "--for", forge.url)
        send_in_vain(alone, contract, forge, sealed, shown)
        told = alone.assign(contract, *there, *sealed, "--wait")
    assert forge.header in forge.seen
    assert [one["source"] for one in told["imports"] if one["kind"] == "kit_bundle"] == [
        {"git": f"{forge.url}/sleeper.git", "access": "work"}
    ]
    assert told["receipt"]["outcome"] == "accepted"
    alone.until(lambda: alone.assignment is not None and alone.assignment.status == "ended")
    outbox = alone.state_folder / "outbox"
    alone.until(lambda: len(list(outbox.glob("*.refused.receipt.json"))) == 2)
    look(alone, shown)
    alone.stop()
    keys, control = alone.state_folder / "keys", alone.home / "control" / "keys"
    canaries = {
        "token": written(token) | packed(f"bot:{token}".encode()),
        "ssh key": {line.encode() for line in ssh.splitlines() if "---" not in line},
        "passphrase": written(PASSPHRASE),
        "sealed key": packed(seed_of(control / "sealed.key")),
        "operator's key": packed(seed_of(control / "operator.key")),
        "rig's key": packed(seed_of(keys / "rig.key")),
        "coin's key": packed((keys / "coin.key").read_bytes()),
    }
    assert holders(canaries, alone.home) == {
        "token": {"rig/access/work.json"},
        "ssh key": {"rig/access/hub.json"},
        "passphrase": set(),
        "sealed key": set(),
        "operator's key": {"control/keys/operator.key"},
        "rig's key": {"rig/keys/rig.key"},
        "coin's key": {"rig/keys/coin.key"},
    }
    said = "\n".join([json.dumps(told), *shown]).encode()
    assert [name for name, forms in canaries.items() if any(form in said for form in forms)] == []


def ssh_key() -> str:
    form = serialization.PrivateFormat.OpenSSH
    made = Ed25519PrivateKey.generate()
    return made.private_bytes(
        serialization.Encoding.PEM, form, serialization.NoEncryption()
    ).decode()


def seed_of(path: Path) -> bytes:
    key = serialization.load_pem_private_key(
        path.read_bytes(), PASSPHRASE.encode() if "ENCRYPTED" in path.read_text() else None
    )
    assert isinstance(key, Ed25519PrivateKey)
    return key.private_bytes_raw()


def keep_key(rig: ServedRig, key: str) -> None:
    """Put an ssh key on the rig, for a server that nobody serves."""
    (rig.home.parent / "ssh").touch(0o600)
    (rig.home.parent / "ssh").write_text(key, encoding="ascii")
    given = ("--for", "ssh://git@127.0.0.1:1", "--secret", str(rig.home.parent / "ssh"))
    rig.told("rig", "access", "set", "hub", *given, "--state", str(rig.state_folder))


def sealed_key(rig: ServedRig, shown: list[str]) -> tuple[str, ...]:
    """Make a key with a passphrase, have the rig trust it, and return how to sign with it."""
    phrase, wrong = rig.home.parent / "phrase", rig.home.parent / "wrong"
    for file, text in ((phrase, PASSPHRASE), (wrong, "another")):
        file.write_text(f"{text}\n", encoding="ascii")
        file.chmod(0o600)
    key = rig.home / "control" / "keys" / "sealed.key"
    made = rig.run("keygen", str(key), "--passphrase-file", str(phrase))
    operator = key.with_name("operator.pub").read_text(encoding="ascii").strip()
    trust = rig.home / "trust.txt"
    sealed = key.with_suffix(".pub").read_text(encoding="ascii").strip()
    trust.write_text(f"{operator} role=root,command\n{sealed}\n", encoding="ascii")
    by_root = ("--rig", "bench", "--key", str(key.with_name("operator.key")))
    rig.told("key", "trust", str(trust), "--version", "2", *by_root)
    rig.until(lambda: len(rig.told("key", "list", "--rig", "bench")["keys"]) == 2)
    refused = rig.run(
        *("receipts", "checkpoint", "--rig", "bench", "--key", str(key)),
        *("--passphrase-file", str(wrong)),
    )
    assert refused.returncode == 2
    private = rig.run(
        "key", "trust", str(key.with_name("operator.key")), "--version", "3", *by_root
    )
    assert private.returncode == 2
    shown += [one.stdout + one.stderr for one in (made, refused, private)]
    return ("--key", str(key), "--passphrase-file", str(phrase))


def send_in_vain(
    rig: ServedRig, contract: Path, forge: Forge, sealed: tuple[str, ...], shown: list[str]
) -> None:
    """Send what fails with a secret at hand: a kit that is not there, a server that is none."""
    ssh = "ssh://git@127.0.0.1:1"
    rig.told("settings", "access", "add", "hub", "--for", ssh)
    write(rig.home / "absent", {"build.sh": BUILD, "check.sh": CHECK})
    write(rig.home / "absent", {"kit.json": json.dumps(KIT | {"name": "absent"})})
    for source, access in ((f"{forge.url}/none.git", "work"), (f"{ssh}/team/kit.git", "hub")):
        there = ("--kit-source", source, "--access", access)
        given = (str(contract), "--kit", "absent", "--rig", "bench", *there, *sealed)
        sent = rig.run("assign", *given)
        assert sent.returncode == 0, sent.stderr
        shown.append(sent.stdout + sent.stderr)


def look(rig: ServedRig, shown: list[str]) -> None:
    """Do what people do with a ledger afterwards: everything that is made is searched, too."""
    state = str(rig.state_folder)
    assert rig.assignment is not None
    champion, made = rig.assignment.champion, str(rig.home / "gain.json")
    for words in (
        ("verdicts", "--state", state),
        ("export", champion, "--state", state, "--patch", "-o", made),
        ("verify", made),
        ("audit", state),
        ("ledger", "views", state, "-o", str(rig.home / "views.db")),
        ("ledger", "export", state, "-o", str(rig.home / "events.jsonl")),
        ("ledger", "replay", state),
        ("receipts", "list", "--rig", "bench"),
        ("status", "--state", state),
    ):
        done = rig.run(*words)
        assert done.returncode == 0, done.stderr
        shown.append(done.stdout + done.stderr)


def keep_secret(rig: ServedRig, url: str, token: str, pem: Path, shown: list[str]) -> None:
    """Put the secret on the rig as its owner does."""
    rig.state_folder.mkdir(mode=0o711)
    state = ("--state", str(rig.state_folder))
    (rig.home.parent / "token").touch(0o600)
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
    assert listed == {"accesses": [{"name": "work", "for": url, "secret": "file", "problem": None}]}
    shown += [json.dumps([said, listed]), rig.run("rig", "access", *state).stdout]
