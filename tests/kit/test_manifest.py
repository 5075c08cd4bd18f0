# ruff: noqa: E501 (a row of the table is a line)
"""The manifest: every field, default and rule, each by its number in the requirements."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.kit.seed import GONE, SEED, bent, kit, problems
from thermite.errors import KitError
from thermite.kit.manifest import KIT_PATH, load_kit, read_manifest
from thermite.schema.kit import Kit, Problem, RateMetric

V = {"cells": ["small"]}
S = {"name": "gbrain", "agents": ["workers"]}
NAME = "needs text matching ^[a-z0-9][a-z0-9._-]{0,63}$, and is "
NULL = "null is not a value here: leave the field out"


def test_the_page_s_own_manifest_is_read_unchanged() -> None:
    found = kit()
    assert found.name == "smoke-cpu"
    assert found.build.command == ["sh", ".kit/bench/build.sh"]
    assert found.cells["held"] == {"n": 192, "reps": 60, "seed": 37, "work": 849346560}
    assert list(found.cells) == ["small", "large", "held"]
    assert found.metrics == {"flops_per_s": RateMetric(unit="FLOP/s", work="work")}
    assert found.verifiers == {}
    assert found.mcp_servers == []


def test_defaults_are_the_page_s() -> None:
    found = kit(
        ("build", {"command": ["make"], "outputs": ["a"]}),
        ("run", {"command": ["{build}"]}),
        ("check", {"command": ["true"]}),
    )
    assert (found.build.copy, found.build.timeout_s) == ([], 600)
    assert (found.build.rss_mib, found.build.disk_mib) == (4096, 4096)
    assert (found.run.copy, found.run.timeout_s, found.run.rss_mib) == ([], 300, 1024)
    assert (found.run.disk_mib, found.check.timeout_s) == (256, 120)


FAULTS = [
    pytest.param(("x", 1), "x: unknown field: take it out", id="K-004-top"),
    pytest.param(("build/rss_mb", 1), "build.rss_mb: unknown field: did you mean rss_mib?", id="K-004-build"),
    pytest.param(("run/env", {}), "run.env: unknown field: take it out", id="K-004-run"),
    pytest.param(("check/rss_mib", 1), "check.rss_mib: unknown field: take it out", id="K-026-check-has-no-memory"),
    pytest.param(("metrics/m", {"from": "time", "direction": "min"}), "metrics.m.direction: unknown field: take it out", id="K-051-no-direction"),
    pytest.param(("metrics/m", {"unit": "s", "from": "time", "work": "n"}), "metrics.m.work: unknown field: take it out", id="D16-field-of-another-kind"),
    pytest.param(("verifiers/v", V | {"cell": 1}), "verifiers.v.cell: unknown field: did you mean cells?", id="K-004-verifier"),
    pytest.param(("mcp_servers", [S | {"url": ""}]), "mcp_servers[0].url: unknown field: take it out", id="K-004-server"),
    pytest.param(("schema_version", True), "schema_version: needs 1, and is true (this build reads schema version 1)", id="K-010-true"),
    pytest.param(("schema_version", "1"), 'schema_version: needs 1, and is "1" (this build reads schema version 1)', id="K-010-text"),
    pytest.param(("schema_version", 0), "schema_version: needs 1, and is 0 (this build reads schema version 1)", id="K-010-0"),
    pytest.param(("schema_version", 2), "schema_version: needs 1, and is 2 (this build reads schema version 1)", id="C10-K-010-2"),
    pytest.param(("schema_version", 1.0), "schema_version: needs 1, and is 1.0 (this build reads schema version 1)", id="K-010-1.0"),
    pytest.param(("schema_version", GONE), "schema_version: missing: needs 1 (this build reads schema version 1)", id="C10-K-010-missing"),
    pytest.param(("name", "a" * 65), f'name: {NAME}"{"a" * 60}…"'.replace("…", "\\u2026"), id="K-011-65"),
    pytest.param(("name", "smoke\n"), f'name: {NAME}"smoke\\n"', id="D05-K-011-line-break"),
    pytest.param(("name", ""), f'name: {NAME}""', id="K-011-empty"),
    pytest.param(("name", "-a"), f'name: {NAME}"-a"', id="K-011-hyphen-first"),
    pytest.param(("name", "Smoke"), f'name: {NAME}"Smoke"', id="K-011-upper-case"),
    pytest.param(("name", "a٣"), f'name: {NAME}"a\\u0663"', id="D05-digit-of-another-script"),
    pytest.param(("name", 1), f"name: {NAME}1", id="K-011-number"),
    pytest.param(("target", ""), 'target: needs text that is not empty, and is ""', id="D06-empty"),
    pytest.param(("target", GONE), "target: missing: needs text that is not empty", id="K-012-missing"),
    pytest.param(("build", GONE), "build: missing: needs an object", id="K-013-missing"),
    pytest.param(("build", []), "build: needs an object, and is a list", id="K-013-list"),
    pytest.param(("build/copy", ["../x"]), f"build.copy[0]: {KIT_PATH}", id="K-014-climbs"),
    pytest.param(("build/copy", "x"), 'build.copy: needs a list of text, and is "x"', id="K-014-text"),
    pytest.param(("build/command", []), "build.command: needs a list of text, at least one, and has 0", id="K-015-empty"),
    pytest.param(("build/command", [1]), "build.command[0]: needs text, and is 1", id="K-015-number"),
    pytest.param(("build/outputs", []), "build.outputs: needs a list of text, at least one, and has 0", id="K-016-empty"),
    pytest.param(("cells", []), "cells: needs an object, and is a list", id="K-020-list"),
    pytest.param(("cells/x", 3), "cells.x: needs an object, and is 3", id="K-040-bare"),
    pytest.param(("cells/x", {"n": None}), f"cells.x.n: {NULL}", id="K-040-null"),
    pytest.param(("cells/x", {"n": [1]}), "cells.x.n: needs a number, text, true or false, and is a list", id="K-040-list"),
    pytest.param(("cells/x", {"n": {}}), "cells.x.n: needs a number, text, true or false, and is an object", id="K-040-object"),
    pytest.param(("cells/", {}), 'cells."": a name is not empty', id="D08-empty-name"),
    pytest.param(("cells/x", {"": 1}), 'cells.x."": a name is not empty', id="D09-empty-name"),
    pytest.param(("cells/x", {"a=b": 1}), "cells.x.a=b: a parameter's name has no =, line break or NUL", id="D09-equals"),
    pytest.param(("cells/x", {"a\nb": 1}), 'cells.x."a\\nb": a parameter\'s name has no =, line break or NUL', id="D09-line-break"),
    pytest.param(("cells/x", {"a": "1\nwork=9"}), "cells.x.a: a parameter's text has no line break or NUL", id="D09-forged-key"),
    pytest.param(("cells/x", {"a": "1\0"}), "cells.x.a: a parameter's text has no line break or NUL", id="D09-nul"),
    pytest.param(("run", GONE), "run: missing: needs an object", id="K-021-missing"),
    pytest.param(("run/command", "x"), 'run.command: needs a list of text, at least one, and is "x"', id="K-023-text"),
    pytest.param(("metrics", GONE), "metrics: missing: needs an object", id="K-025-missing"),
    pytest.param(("check/command", []), "check.command: needs a list of text, at least one, and has 0", id="K-027-empty"),
    pytest.param(("verifiers", None), f"verifiers: {NULL}", id="K-029-D03-null"),
    pytest.param(("mcp_servers", None), f"mcp_servers: {NULL}", id="K-029-D03-null-servers"),
    pytest.param(("metrics/m", {"work": "n"}), "metrics.m.unit: missing: needs text", id="K-050-without-unit"),
    pytest.param(("metrics/m", {"unit": "x"}), "metrics.m.work: missing: needs text that is not empty", id="K-050-without-work"),
    pytest.param(("metrics/m", {"unit": "x", "work": ""}), 'metrics.m.work: needs text that is not empty, and is ""', id="D16-empty-work"),
    pytest.param(("metrics/m", {"from": "check"}), "metrics.m.field: missing: needs text that is not empty", id="K-052-without-field"),
    pytest.param(("metrics/m", {"from": "run"}), 'metrics.m.from: needs time or check, and is "run"', id="D16-unknown-kind"),
    pytest.param(("metrics/m", {"from": None, "unit": "", "work": "n"}), "metrics.m.from: needs time or check, and is null", id="D16-null-kind"),
    pytest.param(("metrics/m", 1), "metrics.m: needs an object, and is 1", id="K-025-bare"),
    pytest.param(("verifiers/v", {"cells": []}), "verifiers.v.cells: needs a list of text, at least one, and has 0", id="K-061-empty"),
    pytest.param(("verifiers/v", {"cells": ["small", "no"]}), "verifiers.v.cells[1]: no is not a cell of this kit", id="D10-unknown-cell"),
    pytest.param(("verifiers/v", V | {"priority": 1.0}), "verifiers.v.priority: needs an integer, and is 1.0", id="K-062-float"),
    pytest.param(("verifiers/v", V | {"requires": ["w"]}), "verifiers.v.requires[0]: w is not another verifier of this kit", id="K-031-unknown"),
    pytest.param(("verifiers/v", V | {"requires": ["v"]}), "verifiers.v.requires[0]: v is not another verifier of this kit", id="K-031-D11-itself"),
    pytest.param(("verifiers/v", V | {"requires": ["small"]}), "verifiers.v.requires[0]: small is not another verifier of this kit", id="K-031-cell"),
    pytest.param(("mcp_servers", {}), "mcp_servers: needs a list with at most 20, and is an object", id="K-070-object"),
    pytest.param(("mcp_servers", [S | {"name": f"s{i}"} for i in range(21)]), "mcp_servers: needs a list with at most 20, and has 21", id="K-070-21"),
    pytest.param(("mcp_servers", [S, S]), "mcp_servers[1].name: gbrain is named twice", id="K-070-twice"),
    pytest.param(("mcp_servers", [{"agents": ["workers"]}]), "mcp_servers[0].name: missing: needs text matching ^[a-z0-9][a-z0-9-]{0,63}$", id="K-071-missing"),
    pytest.param(("mcp_servers", [S | {"name": "a.b"}]), 'mcp_servers[0].name: needs text matching ^[a-z0-9][a-z0-9-]{0,63}$, and is "a.b"', id="K-071-dot"),
    pytest.param(("mcp_servers", [S | {"name": "a_b"}]), 'mcp_servers[0].name: needs text matching ^[a-z0-9][a-z0-9-]{0,63}$, and is "a_b"', id="K-071-underscore"),
    pytest.param(("mcp_servers", [S | {"name": "a\n"}]), 'mcp_servers[0].name: needs text matching ^[a-z0-9][a-z0-9-]{0,63}$, and is "a\\n"', id="D05-K-071-line-break"),
    pytest.param(("mcp_servers", [S | {"agents": []}]), "mcp_servers[0].agents: needs a list, at least one, and has 0", id="K-072-empty"),
    pytest.param(("mcp_servers", [S | {"agents": ["workers", "workers"]}]), "mcp_servers[0].agents[1]: workers stands twice", id="K-072-twice"),
    pytest.param(("mcp_servers", [S | {"agents": ["auditor"]}]), 'mcp_servers[0].agents[0]: needs workers, planner or advisors, and is "auditor"', id="K-072-auditor"),
    pytest.param(("mcp_servers", [S | {"tools": {"workers": []}}]), "mcp_servers[0].tools.workers: needs a list of text, at least one, and has 0", id="K-073-empty"),
    pytest.param(("mcp_servers", [S | {"tools": {"workers": [""]}}]), "mcp_servers[0].tools.workers[0]: a tool's name is not empty", id="D19-empty-tool"),
    pytest.param(("mcp_servers", [S | {"tools": None}]), f"mcp_servers[0].tools: {NULL}", id="D03-null-tools"),
    pytest.param(("mcp_servers", [S | {"tools": {"auditor": ["x"]}}]), 'mcp_servers[0].tools.auditor: needs workers, planner or advisors, and is "auditor"', id="K-073-unknown-kind"),
]  # fmt: skip
"""One change of the page's manifest each, and the one problem that it makes."""


@pytest.mark.parametrize(("change", "said"), FAULTS)
def test_one_fault_is_one_problem_at_its_place(change: tuple[str, object], said: str) -> None:
    assert problems(change) == [said]


@pytest.mark.parametrize("kind", ["workers", "planner", "advisors"])
def test_K_074_tools_of_a_kind_that_does_not_get_the_server(kind: str) -> None:  # noqa: N802
    others = [one for one in ("workers", "planner", "advisors") if one != kind]
    server = {"name": "gbrain", "agents": others, "tools": {kind: ["x"]}}
    said = f"the {kind} do not get this server: add {kind} to agents, or take out its tools"
    assert problems(("mcp_servers", [server])) == [f"mcp_servers[0].tools.{kind}: {said}"]


LIMITS = [
    ("build/timeout_s", "K-017"), ("build/rss_mib", "K-018"), ("build/disk_mib", "K-019"),
    ("run/timeout_s", "K-024"), ("run/rss_mib", "K-024"), ("run/disk_mib", "K-024"),
    ("check/timeout_s", "K-028"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("place", "value", "shown"),
    [
        pytest.param(place, value, shown, id=f"{number}-{place}-{shown[:6]}")
        for place, number in LIMITS
        for value, shown in [
            (0, "0"), (-1, "-1"), (True, "true"), (1.5, "1.5"), (60.0, "60.0"), ("60", '"60"'),
        ]
    ],
)  # fmt: skip
def test_a_limit_is_an_integer_of_at_least_1(place: str, value: object, shown: str) -> None:
    said = f"{place.replace('/', '.')}: needs an integer of at least 1, and is {shown}"
    assert problems((place, value)) == [said]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param("6e1", "needs an integer of at least 1, and is 60.0", id="D02-C5-exponent"),
        pytest.param("1e400", "needs an integer of at least 1, and is Infinity", id="C5-1e400"),
        pytest.param(str(2**53), f"is beyond 2^53 - 1: {2**53}", id="D02-2^53"),
        pytest.param("1" + "0" * 30, "is beyond 2^53 - 1: 1" + "0" * 30, id="C5-10^30"),
        pytest.param("null", NULL, id="D03-null"),
    ],
)
def test_D02_an_integer_is_an_integer_literal_that_every_reader_keeps(text: str, said: str) -> None:  # noqa: N802
    raw = json.dumps(bent(("build/timeout_s", 777777))).replace("777777", text)
    found = read_manifest(raw.encode())
    assert isinstance(found, list)
    assert [str(one) for one in found] == [f"build.timeout_s: {said}"]


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param(b"[]", id="K-005-list"),
        pytest.param(b"null", id="K-005-null"),
        pytest.param(b"", id="K-005-empty"),
        pytest.param(b"{} {}", id="K-005-two-objects"),
        pytest.param(b"{} // x", id="K-005-comment"),
        pytest.param(b'{"a": 1,}', id="K-005-trailing-comma"),
        pytest.param(b"\xef\xbb\xbf{}", id="D01-C3-byte-order-mark"),
        pytest.param(json.dumps(SEED).encode("utf-16"), id="C3-utf-16"),
        pytest.param(b'{"a": 1, "a": 1}', id="D01-duplicate"),
        pytest.param(b'{"a": NaN}', id="D01-nan"),
        pytest.param(b'{"a": ' + b"9" * 5000 + b"}", id="D01-5000-digits"),
        pytest.param(b'{"a": ' + b"[" * 64 + b"]" * 64 + b"}", id="D01-65-levels"),
        pytest.param(b'{"a": "\\ud800"}', id="D01-lone-surrogate"),
        pytest.param(b'{"a": "\xff"}', id="D01-bad-utf-8"),
        pytest.param(json.dumps(SEED).encode() + b" " * (1 << 20), id="D01-over-1-mib"),
    ],
)
def test_what_is_no_json_object_is_refused_in_one_text(raw: bytes) -> None:
    found = read_manifest(raw)
    assert isinstance(found, list)
    assert [one.text.startswith("kit.json is not valid JSON: ") for one in found] == [True]
    assert found[0].place == ""


def test_C3_crlf_and_tabs_are_white_space() -> None:  # noqa: N802
    raw = json.dumps(SEED, indent="\t").replace("\n", "\r\n").encode()
    assert read_manifest(raw) == kit()


def test_D09_numbers_keep_all_their_digits_and_are_finite() -> None:  # noqa: N802
    raw = json.dumps(bent(("cells/x", {"n": 777777}))).encode()
    found = read_manifest(raw.replace(b"777777", b"1" + b"0" * 30))
    assert isinstance(found, Kit)
    assert found.cells["x"] == {"n": 10**30}
    for text in (b"1e999", b"-1e400"):
        refused = read_manifest(raw.replace(b"777777", text))
        assert refused == [Problem(place="cells.x.n", text="is a number beyond floating point")]


def test_a_hundred_thousand_problems_are_counted_and_quick() -> None:
    found = read_manifest(json.dumps({f"f{i}": 1 for i in range(60_000)}).encode())
    assert isinstance(found, list)
    assert len(found) == 1001
    assert found[-1].text == f"and {60_000 + 8 - 1000} more problems"


def test_a_name_can_t_paint_a_terminal_or_forge_a_line() -> None:
    for bad in ("\x1b[31m", "a\nkit ok", "\u202e"):
        for text in problems((f"cells/{bad}", 1), (bad, 1)):
            assert text.isprintable()


def test_K_001_only_kit_json_at_the_root_is_read(tmp_path: Path) -> None:  # noqa: N802
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/kit.json").write_text(json.dumps(SEED))
    with pytest.raises(KitError, match="at its root"):
        load_kit(tmp_path)
    (tmp_path / "kit.json").write_text(json.dumps(SEED))
    assert load_kit(tmp_path) == kit()


def test_D01_kit_json_is_a_plain_file_and_no_link(tmp_path: Path) -> None:  # noqa: N802
    (tmp_path / "real").write_text(json.dumps(SEED))
    (tmp_path / "kit.json").symlink_to("real")
    with pytest.raises(KitError, match="not a plain file"):
        load_kit(tmp_path)
    (tmp_path / "kit.json").unlink()
    (tmp_path / "kit.json").mkdir()
    with pytest.raises(KitError, match="not a plain file"):
        load_kit(tmp_path)


def test_D56_problems_are_joined_for_the_one_who_sends_the_kit(tmp_path: Path) -> None:  # noqa: N802
    whole: Any = bent(("name", "A"), ("target", 1))
    (tmp_path / "kit.json").write_text(json.dumps(whole))
    with pytest.raises(KitError) as caught:
        load_kit(tmp_path)
    assert str(caught.value) == (
        f'the kit\'s kit.json is not valid: name: {NAME}"A"; '
        "target: needs text that is not empty, and is 1"
    )
