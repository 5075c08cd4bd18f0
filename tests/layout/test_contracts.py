"""Each contract between rooms refuses a fault planted against it."""

import tomllib
from pathlib import Path

import pytest
from grimp import ImportGraph
from importlinter import Contract
from importlinter.api import read_configuration
from importlinter.contracts.layers import LayersContract

from tests.layout.room_contracts import OURS, ForbiddenRoom, LayersOfRoom, ProtectedRoom

ROOT = Path(__file__).parents[2]
KINDS: dict[str, type[Contract]] = {
    "layers": LayersContract,
    "layers_of_room": LayersOfRoom,
    "forbidden_room": ForbiddenRoom,
    "protected_room": ProtectedRoom,
}
ROOMS = {
    *(f"thermite.{name}" for name in ("errors", "evaluate", "schema", "command", "control")),
    *(f"thermite.{name}" for name in ("kit", "kit.fit", "kit.placeholder", "kit.bundle")),
    *(f"thermite.{name}" for name in ("ledger", "campaign", "spawner", "rig", "interactor")),
    *(f"thermite.{name}" for name in ("judge", "judge.job", "judge.simulate", "judge.build")),
    *(f"thermite.judge.{name}" for name in ("run", "check", "measure", "verdict")),
    *(f"thermite.{name}" for name in ("agent", "agent.propose", "report", "audit", "harness")),
    *(f"thermite.cli.{name}" for name in ("assign", "audit", "report", "demo")),
    *("thermite", "thermite.cli", "supervisor"),
}
OUTSIDE = {"os", "subprocess", "time", "random", "sqlite3", "git", "torch", "msgspec"}
FAULTS = [
    pytest.param("layers", ["thermite.schema > thermite.command"], id="below looks up"),
    pytest.param("layers", ["thermite.judge > thermite.agent"], id="judge knows agents"),
    pytest.param("layers", ["thermite.control > thermite.harness"], id="both ends meet"),
    pytest.param("layers", ["thermite.cli > supervisor"], id="cli is the supervisor"),
    pytest.param("layers", ["thermite.kit > thermite.ledger"], id="kits are recorded by others"),
    pytest.param("judge", ["thermite.judge.build > thermite.judge.run"], id="steps meet"),
    pytest.param("judge", ["thermite.judge.verdict > thermite.judge.job"], id="step walks"),
    pytest.param("judge", ["thermite.judge.knot > thermite.schema"], id="a step nobody listed"),
    pytest.param("pure", ["thermite.campaign > time"], id="fold reads the clock"),
    pytest.param(
        "pure",
        ["thermite.judge.verdict > thermite.schema", "thermite.schema > os"],
        id="through another room",
    ),
    pytest.param("pure", ["thermite.kit.fit > thermite.ledger"], id="fit reads the ledger"),
    pytest.param("command", ["thermite.command > time"], id="verify reads the clock"),
    pytest.param("propose", ["thermite.agent.propose > subprocess"], id="proposal acts"),
    pytest.param("simulate", ["thermite.judge.simulate > time"], id="simulation reads the clock"),
    pytest.param("spawner", ["thermite.spawner > thermite.errors"], id="knows our errors"),
    pytest.param("spawner", ["thermite.spawner > msgspec"], id="knows a package"),
    pytest.param("spawner-importers", ["thermite.rig > thermite.spawner"], id="client imports"),
    pytest.param("spawner-importers", ["thermite.cli > thermite.spawner"], id="serve imports"),
    pytest.param(
        "supervisor",
        ["supervisor > thermite.command", "thermite.command > thermite.ledger"],
        id="ledger through commands",
    ),
    pytest.param("interactor", ["thermite.interactor > thermite.rig"], id="partner starts"),
    pytest.param("away-from-the-rig", ["thermite.cli.audit > torch"], id="audit needs torch"),
    pytest.param("away-from-the-rig", ["thermite.control > thermite.rig"], id="operator's rig"),
    pytest.param("audit", ["thermite.audit > git"], id="audit needs git"),
    pytest.param("evaluate", ["thermite.evaluate > thermite.judge"], id="judge in the loop"),
]


@pytest.fixture(scope="module")
def contracts() -> dict[str, Contract]:
    read = read_configuration(str(ROOT / "pyproject.toml"))
    return {
        options["id"]: KINDS[options["type"]](
            options["name"], read["session_options"] | {"root_packages": list(OURS)}, options
        )
        for options in read["contracts_options"]
    }


def graph_of(imports: list[str]) -> ImportGraph:
    """Return a graph of all rooms, with the imports `importer > imported`."""
    graph = ImportGraph()
    for module in ROOMS | OUTSIDE:
        graph.add_module(module, is_squashed=module in OUTSIDE)
    for line in imports:
        importer, imported = line.split(" > ")
        graph.add_import(importer=importer, imported=imported, line_number=1, line_contents="")
    return graph


@pytest.mark.parametrize(("broken", "imports"), FAULTS)
def test_planted_fault_is_refused(
    contracts: dict[str, Contract], broken: str, imports: list[str]
) -> None:
    assert not contracts[broken].check(graph_of(imports), verbose=False).kept


def test_every_contract_has_a_planted_fault(contracts: dict[str, Contract]) -> None:
    assert {fault.values[0] for fault in FAULTS} == set(contracts)


def test_rooms_without_a_fault_are_kept(contracts: dict[str, Contract]) -> None:
    graph = graph_of(["thermite.harness > thermite.judge.job", "thermite.judge > thermite.rig"])
    assert [
        name for name, each in contracts.items() if not each.check(graph, verbose=False).kept
    ] == []


def test_no_contract_misspells_a_room() -> None:
    named = {
        module
        for contract in read_configuration(str(ROOT / "pyproject.toml"))["contracts_options"]
        for option in ("source_modules", "forbidden_modules", "protected_modules")
        for module in contract.get(option, [])
        if module.split(".")[0] in OURS
    }
    assert named <= ROOMS


def test_every_room_has_its_layer() -> None:
    table = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    layers = next(each for each in table["contracts"] if each["id"] == "layers")["layers"]
    named = {part.strip(" ()") for layer in layers for part in layer.split("|")}
    rooms = {f"thermite.{path.parent.name}" for path in ROOT.glob("thermite/*/__init__.py")}
    assert rooms - {"thermite.spawner"} <= named
