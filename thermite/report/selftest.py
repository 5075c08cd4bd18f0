"""A selftest for a person: what the rig sees, and how its noise looks."""

from collections.abc import Mapping

from thermite.report.campaign import percent
from thermite.schema.judging import RUN_S_OF, STARTUP_SHARE_OF, RigSelftest


def selftest_lines(found: RigSelftest) -> list[str]:
    """Return a full selftest, one sentence or figure a line; unknown is said, never 0."""
    told = found.figures
    lines = [f"this rig, graded {found.grade}, {_sight(found)}"]
    lines.append(
        f"noise of D over {len(found.blocks)} blocks: robust sd {_share(told, 'robust_sd')}, 95 %"
        f" within {_share(told, 'q95')}, excess kurtosis {_plain(told, 'kurtosis')}, neighbours'"
        f" correlation {_plain(told, 'lag_1')}"
    )
    lines.append(
        f"the two orders lie {_share(told, 'order_effect')} apart;"
        f" {_share(told, 'discard_share')} of the blocks were disturbed"
    )
    wake, jitter = told.get("wake_s"), told.get("wake_sd_s")
    if wake is not None:
        spread = "unknown" if jitter is None else f"{1e3 * jitter:.3f} ms"
        lines.append(
            f"a program that does nothing takes {1e3 * wake:.3f} ms, give or take {spread}"
        )
    lines += _short_cells(told)
    if found.biased:
        lines.append("biased: two selftests running show one arm faster than itself")
    if found.insensitive:
        lines.append("insensitive: a known gain was missed twice running")
    return lines


def _sight(found: RigSelftest) -> str:
    return (
        "sees no gain below twice the speed"
        if found.sees is None
        else (f"sees ≥ {100 * found.sees:.1f} %")
    )


def _short_cells(told: Mapping[str, float | None]) -> list[str]:
    lines = []
    for name, share in told.items():
        cell = name.removeprefix(STARTUP_SHARE_OF)
        run_s = told.get(RUN_S_OF + cell)
        if name.startswith(STARTUP_SHARE_OF) and share is not None and run_s is not None:
            lines.append(
                f"starting up is {percent(share)} of a run of {1e3 * run_s:.1f} ms in cell {cell}:"
                " raise its work"
            )
    return lines


def _share(told: Mapping[str, float | None], name: str) -> str:
    found = told.get(name)
    return "unknown" if found is None else f"{100 * found:.2f} %"


def _plain(told: Mapping[str, float | None], name: str) -> str:
    found = told.get(name)
    return "unknown" if found is None else f"{found:.2f}"
