"""Contracts between rooms, some of which are not built yet.

The built-in types refuse to run when a module that they name doesn't exist. These leave
out the rooms of ours that aren't there; `test_contracts` holds every name in a contract
against a list of its own, so that a misspelling can't hide.
"""

from collections.abc import Iterable

from grimp import ImportGraph
from importlinter import Contract, ContractCheck
from importlinter.contracts.forbidden import ForbiddenContract
from importlinter.contracts.layers import LayersContract
from importlinter.contracts.protected import ProtectedContract
from importlinter.domain.imports import ModuleExpression

OURS = ("thermite", "supervisor")


def leave_out_missing(contract: Contract, option: str, graph: ImportGraph) -> None:
    """Keep of a contract's modules those that exist, and all that aren't ours."""
    named: Iterable[ModuleExpression] = getattr(contract, option)
    setattr(contract, option, [room for room in named if is_there(room, graph)])


def is_there(room: ModuleExpression, graph: ImportGraph) -> bool:
    """Return whether a module exists or isn't ours."""
    return room.expression in graph.modules or room.expression.split(".")[0] not in OURS


class ForbiddenRoom(ForbiddenContract):
    """No room of the first list imports one of the second, not even through others."""

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        """Check the rooms that are there."""
        leave_out_missing(self, "source_modules", graph)
        leave_out_missing(self, "forbidden_modules", graph)
        return super().check(graph, verbose)


class LayersOfRoom(LayersContract):
    """The parts of one room, each knowing only those below it."""

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        """Check the room when it is there."""
        leave_out_missing(self, "containers", graph)
        return super().check(graph, verbose)


class ProtectedRoom(ProtectedContract):
    """Only the allowed importers import the protected rooms."""

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        """Check the rooms that are there."""
        leave_out_missing(self, "protected_modules", graph)
        return super().check(graph, verbose)
