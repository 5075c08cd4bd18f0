"""Backends that a rig refuses before anything is created."""

import msgspec
import pytest

from thermite.errors import CommandError
from thermite.harness.assign_backend import check_foreign_code
from thermite.schema.contract import Contract
from thermite.schema.event import IsolationProbe


def contract(backend: str, isolation: str) -> Contract:
    return msgspec.convert(
        {
            "schema_version": 1,
            "name": "x",
            "campaign": "hill_climb",
            "task": "t",
            "project": {"repo": "p", "commit": "0" * 40},
            "isolation": isolation,
            "agents": {"workers": {"backend": backend}},
        },
        Contract,
    )


@pytest.mark.parametrize(
    ("backend", "isolation", "level", "refused"),
    [
        pytest.param("command", "protected", "none", True, id="the judge's own user"),
        pytest.param("command", "any", "none", False, id="the contract takes any"),
        pytest.param("command", "protected", "users", False, id="a user of its own"),
        pytest.param("replay", "protected", "none", False, id="no foreign code"),
    ],
)
def test_foreign_code_never_runs_as_the_judge_unless_asked_for(
    backend: str, isolation: str, level: str, refused: bool
) -> None:
    probe = IsolationProbe(level=level, features=[], gaps=[], canaries={})
    if not refused:
        check_foreign_code(contract(backend, isolation), probe)
        return
    with pytest.raises(CommandError, match="runs foreign code") as found:
        check_foreign_code(contract(backend, isolation), probe)
    assert found.value.code == "isolation"
