"""Look at a kit's folder as its author would: kit.json, and the files that it names.

Needs no git and no rig. Problems keep a kit from ever measuring; warnings are for what
is legal and probably not meant. Source: kit requirements D17 and D18.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Final, NamedTuple

from thermite.errors import KitError
from thermite.kit.folder import MOST_LEVELS, Kind, entries_below, is_linked, kind_of
from thermite.kit.manifest import manifest_bytes, read_manifest
from thermite.kit.placeholder import NAMES, leaves_its_folder, placeholders
from thermite.kit.program import program_warnings
from thermite.schema.document import printable
from thermite.schema.kit import DRIVERS, Kit, RateMetric, TimeMetric

MOST_CELLS: Final = 20
"""Cells without work that are named for each metric (our figure)."""
MOST_FILES: Final = 49_999
"""Most files and folders of one copied path: one below the disk rule (Kit manifest, Limits)."""

FEWEST_MIB: Final = 16
"""Below this a memory limit ends what is still starting (our figure: twice a bare Python's)."""
_LONGEST_POINTER: Final = 1024  # bytes, by the pointer's specification
_POINTER: Final = re.compile(
    rb"version https://git-lfs\.github\.com/spec/v1\n(?:.*\n)*?oid [^\n]*\nsize ([0-9]{1,15})\n"
)


class Examined(NamedTuple):
    """What was found; kit: None when kit.json has problems."""

    kit: Kit | None
    problems: list[str]
    warnings: list[str]


def examine(folder: Path) -> Examined:
    """Return everything that is wrong with a kit's folder, and what is doubtful."""
    try:
        found = read_manifest(manifest_bytes(folder))
    except KitError as why:
        return Examined(None, [str(why)], [])
    if not isinstance(found, Kit):
        return Examined(None, [str(one) for one in found], [])
    problems = [
        *copy_problems(folder, "build.copy", found.build.copy),
        *copy_problems(folder, "run.copy", found.run.copy),
        *check_problems(found, folder),
    ]
    return Examined(
        found,
        list(dict.fromkeys(printable(text) for text in problems)),
        [printable(text) for text in warnings(found, folder)],
    )


def copy_problems(folder: Path, field: str, paths: list[str]) -> Iterator[str]:
    """Yield what can't be copied: missing paths, links and special files, at any depth."""
    for path in paths:
        waiting = [path]
        seen = 0
        while waiting:
            here = waiting.pop()
            seen += 1
            kind = _kind(folder, here)
            if seen > MOST_FILES:
                yield f"kit {field}: more than {MOST_FILES} files and folders in {path}"
                break
            if kind == "missing":
                yield f"kit {field}: {here} is not in the kit"
            elif kind == "other":
                yield f"kit {field}: not a regular file or directory: {here}"
            elif here.count("/") >= MOST_LEVELS:
                yield f"kit {field}: folders nest {MOST_LEVELS} deep or more in {path}"
                break
            elif kind == "folder":
                names = sorted((one.name for one in (folder / here).iterdir()), reverse=True)
                waiting += [f"{here}/{name}" for name in names]


def _kind(folder: Path, path: str) -> Kind:
    """Return `missing`, `file`, `folder` or `other`; what lies behind a link is `other`."""
    kind = kind_of(folder / path)
    return "other" if kind != "missing" and is_linked(folder, str(Path(path).parent)) else kind


def warnings(kit: Kit, folder: Path) -> Iterator[str]:
    """Yield what is legal and probably not meant."""
    if kit.target not in DRIVERS:
        known = " and ".join(sorted(DRIVERS))
        yield f"target: this version has no driver for {kit.target}, only for {known}"
    if not kit.cells:
        yield "cells: there are none, so there is nothing to measure"
    yield from _placeholder_warnings(kit)
    yield from _metric_warnings(kit)
    yield from program_warnings(kit, folder)
    yield from limit_warnings(kit)
    yield from pointer_warnings(folder)


def limit_warnings(kit: Kit) -> Iterator[str]:
    """Yield memory limits that are too small to start a program under."""
    for name, mib in (("build", kit.build.rss_mib), ("run", kit.run.rss_mib)):
        if mib < FEWEST_MIB:
            yield (
                f"{name}.rss_mib: {mib} MiB are too little to start anything: a shell takes 2 MiB,"
                f" a Python 10 MiB; give {FEWEST_MIB} or more"
            )


def check_problems(kit: Kit, folder: Path) -> Iterator[str]:
    """Yield what the check's command names in the kit and is not there: no run ever passes it."""
    for one in placeholders(kit.check.command):
        inside = one.name == "kit" and bool(one.below) and not leaves_its_folder(one.below)
        if inside and not (folder / one.below).exists():
            yield f"check.command: {one.written} is not in the kit"


def pointer_warnings(folder: Path) -> Iterator[str]:
    """Yield each file that only points to its content, as git LFS leaves them: no filter is run.

    Source: https://github.com/git-lfs/git-lfs/blob/main/docs/spec.md, The Pointer.
    """
    for path in sorted(entries_below(folder, most=MOST_FILES)):
        if path.is_symlink() or not path.is_file() or path.stat().st_size > _LONGEST_POINTER:
            continue
        found = _POINTER.match(path.read_bytes())
        if found:
            size = int(found[1]) / (1 << 20)
            yield (
                f"{path.relative_to(folder).as_posix()} is an LFS pointer ({size:.1f} MiB are"
                " elsewhere): no judge fetches them; large files are for the contract's models"
            )


def _placeholder_warnings(kit: Kit) -> Iterator[str]:
    for section, args in (("run", kit.run.command), ("check", kit.check.command)):
        for at, arg in enumerate(args):
            for one in placeholders([arg]):
                place = f"{section}.command[{at}]"
                if one.name not in NAMES:
                    yield f"{place}: unknown placeholder {{{one.name}}}"
                elif leaves_its_folder(one.below):
                    yield f"{place}: placeholder {one.written} leaves its folder"
                elif one.name == "build" and not _is_kept(one.below, kit.build.outputs):
                    kept = ", ".join(kit.build.outputs)
                    yield f"{place}: {one.written} is not among what the build keeps ({kept})"
    if all(one.name != "build" for one in placeholders(kit.run.command)):
        yield "run.command: no {build} in it, so every candidate runs the same"


def _is_kept(below: str, outputs: list[str]) -> bool:
    """Return whether a path of a build is an output, lies in one, or holds one."""
    path = PurePosixPath(below)
    kept = [PurePosixPath(one) for one in outputs]
    return any(path.is_relative_to(one) or one.is_relative_to(path) for one in kept)


def _metric_warnings(kit: Kit) -> Iterator[str]:
    for name, metric in kit.metrics.items():
        if isinstance(metric, TimeMetric) and metric.unit != "s":
            yield f"metrics.{name}.unit: a time is in s, whatever its unit says ({metric.unit!r})"
        if isinstance(metric, RateMetric):
            idle = [cell for cell, given in kit.cells.items() if not _works(given, metric.work)]
            for cell in idle[:MOST_CELLS]:
                work = kit.cells[cell].get(metric.work)
                said = "no" if work is None else f"no usable ({work!r})"
                yield f"metrics.{name}.work: cell {cell} has {said} {metric.work}"
            if len(idle) > MOST_CELLS:
                yield f"metrics.{name}.work: so have {len(idle) - MOST_CELLS} cells more"


def _works(parameters: Mapping[str, object], work: str) -> bool:
    given = parameters.get(work)
    return isinstance(given, int | float) and given is not True and given > 0
