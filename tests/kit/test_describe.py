"""What a judge does with a kit, in words."""

from tests.kit.seed import kit
from thermite.kit.describe import describe


def test_every_part_of_a_kit_is_told() -> None:
    told = describe(
        kit(
            ("run/copy", ["data/in.bin"]),
            ("run/command", ["{build:out/bench}", "--data", "{kit:data/in.bin}"]),
            ("metrics", {"t": {"from": "time"}, "acc": {"from": "check", "field": "accuracy"}}),
            ("verifiers", {"late": {"cells": ["held"], "requires": ["first"]},
                           "first": {"cells": ["small"], "priority": 1}}),
            ("mcp_servers", [{"name": "s", "agents": ["workers", "planner"],
                              "tools": {"planner": ["look"]}}]),
            ("cells/empty", {}),
        )
    )  # fmt: skip
    for line in (
        "smoke-cpu measures on cpu",
        "  runs      sh .kit/bench/build.sh",
        "  sees      .kit/bench",
        "  limits    120 s, 1024 MiB of memory, 256 MiB of disk, 512 processes",
        "  sees      its build, no parameters, data/in.bin",
        "  small: n = 128, reps = 240, seed = 11, work = 1006632960",
        "  empty: no parameters",
        "  t: the run's seconds, in s; a contract improves it with direction min",
        "  acc: what the check prints under accuracy",
        "  s: workers, planner (look)",
    ):
        assert line in told
    assert told.index("  first: runs small (priority 1)") < told.index(
        "  late: runs held (priority 100, after first)"
    )
