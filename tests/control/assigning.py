"""Contracts bent at will, and what control makes of them: checked only, or sent."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path
from typing import Any

from tests.control.desk import CONTRACT, Rig
from thermite.command.keyring import SigningKey
from thermite.control.assign import Prepared, prepare, send
from thermite.control.contract_file import read_contract_file
from thermite.control.home import ControlHome
from thermite.schema.command import AssignBody


def contract_at(folder: Path, **changed: object) -> Path:
    """Write a contract with these changes; a changed section keeps its other fields."""
    fields: dict[str, Any] = deepcopy(CONTRACT)
    for name, value in changed.items():
        if isinstance(value, dict) and isinstance(fields.get(name), dict):
            fields[name] |= value
        else:
            fields[name] = value
    path = folder / "contract.json"
    path.write_text(json.dumps(fields), encoding="utf-8")
    return path


@contextmanager
def prepared_for(
    home: ControlHome,
    contract: Path,
    kit: Path | str | None,
    project: Path | None = None,
    models: tuple[Path, ...] = (),
) -> Iterator[Prepared]:
    """Prepare an assignment to the rig `bench`, whose bundles last as long as this block."""
    with prepare(
        home,
        read_contract_file(contract),
        rig_name="bench",
        project=str(project) if project else None,
        kit=str(kit) if kit else None,
        models=models,
    ) as prepared:
        yield prepared


def checked(
    home: ControlHome, contract: Path, *, kit: Path | str | None = None, project: Path | None = None
) -> Prepared:
    """Return what would be sent."""
    with prepared_for(home, contract, kit, project) as prepared:
        return prepared


def sent(
    home: ControlHome,
    contract: Path,
    key: SigningKey,
    *,
    kit: Path | str,
    models: tuple[Path, ...] = (),
) -> str:
    """Send the assignment; return the order's digest."""
    with prepared_for(home, contract, kit, models=models) as prepared:
        return send(home, prepared, key)[0].digest


def body_of(rig: Rig, key: SigningKey) -> AssignBody:
    """Return the body of the one order in the inbox."""
    body = rig.opened(key).body
    assert isinstance(body, AssignBody)
    return body
