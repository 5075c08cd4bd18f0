"""The manifest's rules across fields, what it allows, and that all problems come at once."""

import pytest

from tests.kit.seed import GONE, kit, problems
from thermite.kit.manifest import KIT_PATH, OUTPUT_PATH, kit_path_problem
from thermite.schema.contract import McpServer
from thermite.schema.kit import CheckMetric, RateMetric, TimeMetric

V = {"cells": ["small"]}
S = {"name": "gbrain", "agents": ["workers"]}
NULL = "null is not a value here: leave the field out"


@pytest.mark.parametrize(
    ("path", "good"),
    [
        pytest.param("bench/build.sh", True, id="K-030-file-in-a-folder"),
        pytest.param("..a", True, id="K-030-dots-in-a-name"),
        pytest.param("...", True, id="K-030-three-dots"),
        pytest.param(".hidden", True, id="K-030-hidden"),
        pytest.param("a b/c\u00e9", True, id="K-030-blank-and-accent"),
        pytest.param("", False, id="K-030-empty"),
        pytest.param("/a", False, id="K-030-absolute"),
        pytest.param("a/", False, id="K-030-ends-with-a-slash"),
        pytest.param(".", False, id="K-030-the-kit-itself"),
        pytest.param("..", False, id="K-030-parent"),
        pytest.param("../secret", False, id="K-030-climbs-out"),
        pytest.param("a/../b", False, id="K-030-climbs-inside"),
        pytest.param("./a", False, id="K-030-dot-first"),
        pytest.param("a//b", False, id="K-030-two-slashes"),
        pytest.param("a/./b", False, id="K-030-dot-inside"),
        pytest.param("a/..", False, id="K-030-climbs-at-the-end"),
        pytest.param("a\0b", False, id="D13-nul"),
    ],
)
def test_a_kit_path_and_an_output_path_stay_inside(path: str, good: bool) -> None:
    assert kit_path_problem(path) == (None if good else KIT_PATH)
    for place, said in (
        ("build/copy", KIT_PATH),
        ("run/copy", KIT_PATH),
        ("build/outputs", OUTPUT_PATH),
    ):
        expected = [] if good else [f"{place.replace('/', '.')}[1]: {said}"]
        assert problems((place, ["ok", path])) == expected


RUN_KIT = "is not in run.copy (a run cannot read the kit)"


@pytest.mark.parametrize(
    ("copied", "command", "refused"),
    [
        pytest.param(["bench"], ["{kit:bench}"], [], id="K-033-the-entry"),
        pytest.param(["bench"], ["{kit:bench/a/b}"], [], id="D15-below-an-entry"),
        pytest.param(["bench"], ["{kit:bench2}"], ["{kit:bench2}"], id="K-033-longer-name"),
        pytest.param(["bench"], ["{kit:bench.sh}"], ["{kit:bench.sh}"], id="K-033-same-start"),
        pytest.param(["bench/a"], ["{kit:bench}"], ["{kit:bench}"], id="D15-parent-of-an-entry"),
        pytest.param(["bench"], ["{kit:bench/../x}"], ["{kit:bench/../x}"], id="D15-not-normal"),
        pytest.param(["bench"], ["{kit:bench/}"], ["{kit:bench/}"], id="D15-ends-with-a-slash"),
        pytest.param(["bench"], ["{kit}"], [], id="D14-bare-with-copies"),
        pytest.param([], ["{kit}"], ["{kit}"], id="D14-bare-without"),
        pytest.param([], ["{kit:}"], ["{kit:}"], id="D25-empty-sub-path"),
        pytest.param([], ["a={kit:x}"], ["{kit:x}"], id="K-033-inside-an-argument"),
        pytest.param(["x"], ["{kit:x}:{kit:y}"], ["{kit:y}"], id="K-033-second-of-an-argument"),
        pytest.param([], ["{kit:a}{kit:b}"], ["{kit:a}", "{kit:b}"], id="K-033-both"),
        pytest.param([], ["{kitty:a} {Kit}"], [], id="K-033-another-name"),
    ],
)  # fmt: skip
def test_a_run_reads_only_what_is_copied(
    copied: list[str], command: list[str], refused: list[str]
) -> None:
    found = problems(("run/copy", copied), ("run/command", command))
    assert found == [f"run.command[0]: {one} {RUN_KIT}" for one in refused]


def test_K_033_build_copy_does_not_count_and_the_check_is_free() -> None:  # noqa: N802
    assert problems(("run/command", ["{kit:bench}"])) == [
        f"run.command[0]: {{kit:bench}} {RUN_KIT}"
    ]
    assert problems(("check/command", ["{kit:anything}", "{kit}"])) == []


def gates(**requires: list[str]) -> tuple[str, object]:
    return "verifiers", {name: V | {"requires": its} for name, its in requires.items()}


LONG = gates(v1999=[], **{f"v{i}": [f"v{i + 1}"] for i in range(1999)})
CYCLE = ["verifiers: verifier gates form a cycle"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        pytest.param(gates(a=["b"], b=["a"]), CYCLE, id="K-032-two"),
        pytest.param(gates(a=["b"], b=["c"], c=["a"]), CYCLE, id="K-032-three"),
        pytest.param(gates(t=["a"], a=["b"], b=["a"]), CYCLE, id="K-032-tail-into-a-loop"),
        pytest.param(gates(a=["b"], b=["a"], c=["d"], d=["c"]), CYCLE, id="D11-two-loops-once"),
        pytest.param(gates(a=["b", "c"], b=["d"], c=["d"], d=[]), [], id="K-032-diamond"),
        pytest.param(gates(a=["b", "b"], b=[]), [], id="D12-twice-the-same"),
        pytest.param(LONG, [], id="K-032-2000-long"),
    ],
)  # fmt: skip
def test_gates_form_no_loop(change: tuple[str, object], said: list[str]) -> None:
    assert problems(change) == said


def test_D11_a_verifier_that_requires_itself_is_no_cycle() -> None:  # noqa: N802
    assert problems(gates(a=["a"])) == [
        "verifiers.a.requires[0]: a is not another verifier of this kit"
    ]


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(("target", "rocm-gpu"), id="D06-K-012-unknown-driver"),
        pytest.param(("build/command", ["sh", "{kit:x}", ""]), id="K-015-D07-placeholder-as-it-is"),
        pytest.param(("cells", {}), id="D08-no-cells"),
        pytest.param(("metrics", {}), id="K-025-D08-no-metrics"),
        pytest.param(("cells/x", {}), id="D09-no-parameters"),
        pytest.param(("cells/x y:z", {"a b": "\u2028 x"}), id="D08-free-names"),
        pytest.param(("cells/x", {"n": -0.0, "t": True, "s": ""}), id="K-040-kinds"),
        pytest.param(("name", "a" * 64), id="K-011-64"),
        pytest.param(("run/command", ["{unknown}", "{build:../x}"]), id="K-087-valid-at-check"),
        pytest.param(("verifiers/v", V | {"priority": -1}), id="K-062-negative"),
        pytest.param(("build/timeout_s", 2**53 - 1), id="D02-largest"),
        pytest.param(("mcp_servers", []), id="K-029-empty-list"),
        pytest.param(("mcp_servers", [S | {"name": f"s{i}"} for i in range(20)]), id="K-070-20"),
    ],
)  # fmt: skip
def test_what_the_page_allows_is_allowed(change: tuple[str, object]) -> None:
    assert problems(change) == []


@pytest.mark.parametrize("place", ["build", "run", "check"])
def test_D07_what_exec_can_never_do_is_refused(place: str) -> None:  # noqa: N802
    assert problems((f"{place}/command", ["", "a"])) == [
        f"{place}.command[0]: a program's name is not empty"
    ]
    assert problems((f"{place}/command", ["a", "b\0"])) == [
        f"{place}.command[1]: no program can be given a NUL character"
    ]


def test_the_three_kinds_of_metric_and_their_units() -> None:
    found = kit(
        ("metrics", {
            "t": {"from": "time"},
            "ms": {"from": "time", "unit": "ms"},
            "acc": {"from": "check", "field": "accuracy"},
            "r": {"unit": "", "work": "n"},
        })
    )  # fmt: skip
    assert found.metrics == {
        "t": TimeMetric(unit="s"),
        "ms": TimeMetric(unit="ms"),
        "acc": CheckMetric(field="accuracy", unit=""),
        "r": RateMetric(unit="", work="n"),
    }


def test_D12_D19_repeats_are_taken_once() -> None:  # noqa: N802
    found = kit(
        ("build/copy", ["a", "b", "a"]),
        ("build/outputs", ["o", "o"]),
        ("run/copy", ["a", "a"]),
        ("verifiers", {"v": {"cells": ["small", "small"]}, "w": V | {"requires": ["v", "v"]}}),
        ("mcp_servers", [S | {"tools": {"workers": ["x", "x"]}}, {**S, "name": "b", "tools": {}}]),
    )
    assert (found.build.copy, found.build.outputs, found.run.copy) == (["a", "b"], ["o"], ["a"])
    assert found.verifiers["v"].cells == ["small"]
    assert found.verifiers["w"].requires == ["v"]
    assert found.mcp_servers == [
        McpServer(name="gbrain", agents=["workers"], tools={"workers": ["x"]}),
        McpServer(name="b", agents=["workers"], tools=None),
    ]


def test_D04_all_problems_come_at_once_in_the_manifest_s_order() -> None:  # noqa: N802
    found = problems(
        ("check/command", []),
        ("build/copy", ["ok", "../x", "/y"]),
        ("build/timeout_s", 0),
        ("cells/small", {"n": None}),
        ("run/command", ["{kit:a}"]),
        ("verifiers", {"a": {"cells": ["q"], "requires": ["b"]}, "b": V | {"requires": ["a"]}}),
        ("zzz", 1),
        ("target", GONE),
    )
    assert found == [
        f"build.copy[1]: {KIT_PATH}",
        f"build.copy[2]: {KIT_PATH}",
        "build.timeout_s: needs an integer of at least 1, and is 0",
        f"cells.small.n: {NULL}",
        f"run.command[0]: {{kit:a}} {RUN_KIT}",
        "check.command: needs a list of text, at least one, and has 0",
        "verifiers: verifier gates form a cycle",
        "verifiers.a.cells[0]: q is not a cell of this kit",
        "zzz: unknown field: take it out",
        "target: missing: needs text that is not empty",
    ]


def test_a_fault_of_shape_hides_no_fault_of_a_rule() -> None:
    assert problems(("build/copy", [1, "../x"]), ("build/timeout_s", "x")) == [
        "build.copy[0]: needs text, and is 1",
        f"build.copy[1]: {KIT_PATH}",
        'build.timeout_s: needs an integer of at least 1, and is "x"',
    ]
