"""Fixtures of control's tests: a home, a rig, a project and a kit on real disks."""

import json
from pathlib import Path

import pytest

from tests.control.desk import CONTRACT, Rig, kit_files, make_repo, make_rig, write
from thermite.command.keyring import SigningKey
from thermite.control.home import ControlHome
from thermite.control.key_files import make_key, read_key
from thermite.control.rigs import add_rig


@pytest.fixture
def home(tmp_path: Path) -> ControlHome:
    made = ControlHome(tmp_path / "control")
    made.make()
    return made


@pytest.fixture
def rig(tmp_path: Path, home: ControlHome) -> Rig:
    """A rig that control knows as `bench`."""
    made = make_rig(tmp_path / "rig")
    add_rig(home, "bench", str(made.inbox), made.key.public.fingerprint)
    return made


@pytest.fixture
def key(home: ControlHome) -> SigningKey:
    """Control's only command key, without a passphrase."""
    path = home.keys / "command.key"
    make_key(path, "me", None)
    return read_key(path, lambda _: b"")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project's repository with a contract in it."""
    folder = tmp_path / "project"
    write(folder, {"contract.json": json.dumps(CONTRACT)})
    make_repo(folder, {"main.c": "int main(void) { return 0; }\n"})
    return folder


@pytest.fixture
def kit(tmp_path: Path) -> Path:
    """A kit as a plain folder."""
    folder = tmp_path / "kit"
    write(folder, kit_files())
    return folder
