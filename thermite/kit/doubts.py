"""What makes a kit easy to fool: `kit check --strict` looks at the files, and runs none.

These are doubts and no proofs: words in a source that usually mean a hole. Source: the how-to
"Write a kit for your project", What makes a kit easy to fool.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from thermite.kit.folder import entries_below, is_linked
from thermite.kit.known import CANDIDATES, read_known
from thermite.kit.manifest import MANIFEST
from thermite.kit.placeholder import leaves_its_folder, placeholders
from thermite.schema.expectation import Expectation, Instead
from thermite.schema.kit import CheckMetric, Kit, RateMetric

MOST_SOURCE: Final = 1 << 20
"""Most bytes of one file that are looked at; a script of 1 MiB is no script."""
MOST_SOURCES: Final = 1000
"""Most files below a copied folder that are looked at."""

SHORTEST_S: Final = 0.05
"""A process takes 1 ms to start, and judging.startup_share_warn is 2 % of a run (our figure)."""
_MOST_WORK: Final = 1 << 53

LOADERS: Final = (
    (r"\bpickle\.(?:load|loads|Unpickler)\b", "unpickles"),
    (r"\b(?:joblib|dill|cloudpickle|shelve|marshal)\.\w+\(", "loads objects"),
    (r"\btorch\.load\((?![^)]*weights_only\s*=\s*True)", "uses torch.load without weights_only"),
    (r"allow_pickle\s*=\s*True", "allows pickles in an array"),
    (r"\byaml\.(?:load|unsafe_load|full_load)\(", "loads YAML objects"),
    (r"(?<![\w.])(?:eval|exec)\s*\(", "evaluates text"),
    (r"\b(?:importlib\.import_module|__import__|runpy\.)", "imports what it is told to"),
)
"""What a check must not do to an output: each of these runs code that a candidate wrote."""

_COMPILER: Final = re.compile(r"(?:^|[\s;&|=(\"'])(?:\S*/)?(?:cc|gcc|g\+\+|c\+\+|clang(?:\+\+)?)\s")
_ALIGNED: Final = ("-falign-functions", "-falign-loops")
_EXPECTED: Final = r"\b(?:expected|wanted|want|golden|correct|reference|truth)\b"
_TELLS: Final = re.compile(
    rf"\{{[^{{}}\"']*{_EXPECTED}[^{{}}]*\}}"  # in an f-string
    rf"|\b(?:str|repr|format)\(\s*{_EXPECTED}[^()]*\)"
    rf"|\bprint\((?:[^()]*,)?\s*{_EXPECTED}\s*[,)]"
    rf"|[\"']\s*%\s*\(?[^()\n]*{_EXPECTED}"
)
"""Ways to put a value of such a name into words; a comparison with it is none."""
_TIMES: Final = frozenset({"s", "ms", "us", "µs", "ns", "sec", "seconds"})
_TIMED: Final = re.compile(r"(?:^|_)(?:time|times|seconds|elapsed|latency|duration|speedup)(?:_|$)")
_WRONG: Final = frozenset({"invalid", "crash_candidate", "constraint_failed", "suspect"})


def doubts(kit: Kit, folder: Path) -> list[str]:
    """Return what makes a kit easy to fool, one text each."""
    return [
        *_check_doubts(kit, folder),
        *_copy_doubts(kit, folder),
        *_build_doubts(kit, folder),
        *_cell_doubts(kit),
        *dict.fromkeys(_short_cells(kit)),
        *_metric_doubts(kit),
        *_candidate_doubts(kit, folder),
    ]


def check_files(kit: Kit, folder: Path) -> dict[str, str]:
    """Return the kit's own files that the check's command names, and their text."""
    named = [
        one.below
        for one in placeholders(kit.check.command)
        if one.name == "kit" and one.below and not leaves_its_folder(one.below)
    ]
    named += [word for word in kit.check.command if (folder / word).is_file() and "/" not in word]
    return {path: _text(folder, path) for path in dict.fromkeys(named)}


def _check_doubts(kit: Kit, folder: Path) -> Iterator[str]:
    for path, text in check_files(kit, folder).items():
        code = "\n".join(line.partition("#")[0] for line in text.splitlines())
        for pattern, what in LOADERS:
            if re.search(pattern, code):
                yield f"check: {path} {what}: an output can run code as the judge"
        if found := _TELLS.search(code):
            yield (
                f"check: {path} seems to print what is expected ({found[0][:40]}): agents read"
                " the reasons"
            )


def _copy_doubts(kit: Kit, folder: Path) -> Iterator[str]:
    sources = check_files(kit, folder)
    for field, paths in (("build.copy", kit.build.copy), ("run.copy", kit.run.copy)):
        for path in paths:
            for file in _files(folder, path):
                if file == MANIFEST:
                    yield f"{field}: {file} tells a candidate the held-out cells"
                elif file.partition("/")[0] == CANDIDATES:
                    yield f"{field}: {file} is a known candidate, and any candidate can read it"
                elif file in sources:
                    yield f"{field}: {file} is the check, and a candidate can read it there"
                elif any(_names(text, Path(file).name) for text in sources.values()):
                    yield f"{field}: {file} is read by the check, and by a candidate there"


def _names(text: str, name: str) -> bool:
    """Return whether a source has a file's name in a text of its own, as an open() would."""
    return re.search(rf"""["'](?:[^"'\n]*/)?{re.escape(name)}["']""", text) is not None


def _build_doubts(kit: Kit, folder: Path) -> Iterator[str]:
    if kit.target != "cpu":
        return
    texts = {"build.command": " ".join(kit.build.command)}
    texts |= {file: _text(folder, file) for path in kit.build.copy for file in _files(folder, path)}
    for place, text in texts.items():
        code = "\n".join(line.partition("#")[0] for line in text.splitlines())
        is_script = place == "build.command" or not re.search(r"\.(?:c|h|cc|cpp|hpp|py)$", place)
        if is_script and _COMPILER.search(code) and not all(flag in code for flag in _ALIGNED):
            yield (
                f"{place}: compiles without {' and '.join(_ALIGNED)}=64: where code lies in memory"
                " is worth 2 to 3 % of speed"
            )


def _cell_doubts(kit: Kit) -> Iterator[str]:
    seen: dict[tuple[object, ...], str] = {}
    for name, parameters in kit.cells.items():
        same = tuple(sorted((key, type(value), value) for key, value in parameters.items()))
        if same in seen:
            yield f"cells: {name} is the same as {seen[same]}"
        seen.setdefault(same, name)


def _short_cells(kit: Kit) -> Iterator[str]:
    """Yield cells whose work is so little beside another's that no run of them can be timed.

    Nothing is run: even if the largest cell took all the time that a run has, and time grew with
    work, such a cell would be over before a clock means much.
    """
    for metric in kit.metrics.values():
        if not isinstance(metric, RateMetric):
            continue
        given = {name: _number(one.get(metric.work)) for name, one in kit.cells.items()}
        works = {name: work for name, work in given.items() if work > 0}
        largest = max(works, key=lambda name: works[name], default="")
        for name, work in works.items():
            most_s = kit.run.timeout_s * (work / works[largest])
            if most_s < SHORTEST_S:
                yield (
                    f"cells: {name} is too short to time: if {largest} took all of run.timeout_s"
                    f" ({kit.run.timeout_s} s), its {metric.work} of {work:g} would be done in"
                    f" {1000 * most_s:.2g} ms: make it larger"
                )


def _number(given: object) -> float:
    """Return a cell's work as a number that can be divided; 0 for what is none."""
    if isinstance(given, bool) or not isinstance(given, int | float):
        return 0.0
    return float(min(given, _MOST_WORK)) if given > 0 else 0.0


def _metric_doubts(kit: Kit) -> Iterator[str]:
    for name, metric in kit.metrics.items():
        if isinstance(metric, CheckMetric) and (
            metric.unit in _TIMES or _TIMED.search(metric.field)
        ):
            yield (
                f"metrics.{name}: a time that the check reports can only come from what the"
                ' candidate wrote: use "from": "time"'
            )


def _candidate_doubts(kit: Kit, folder: Path) -> Iterator[str]:
    """Doubt only what can be read: a file with problems says nothing of what it lacks."""
    known = read_known(kit, folder)
    verdicts = {verdict for one in known.expectations.values() for verdict in one.verdict}
    if len(known.expectations) == len(known.names):
        if not verdicts & _WRONG:
            yield "candidates: none of them is wrong, so nothing shows that the check finds one"
        if "promoted" not in verdicts:
            yield (
                "candidates: none of them is truly faster, so nothing shows that the kit sees"
                " a gain"
            )
    if known.contract is None:
        return
    for name, one in known.expectations.items():
        cases: list[Expectation | Instead] = [one, *one.instead]
        if one.against != "none" and any(map(_forgets_luck, cases)):
            yield (
                f"candidates/{name}/expect.toml: not_better without not_confirmed: luck carries a"
                " candidate without a gain through the screen in up to"
                f" {100 * known.contract.judging.screen_alpha:g} % of tries: add not_confirmed, or"
                " the reason where nothing is timed"
            )
    if not known.contract.held_out_cells:
        yield "cells: none is held out in candidates/contract.toml, so agents see them all"


def _forgets_luck(case: Expectation | Instead) -> bool:
    """Return whether screen alone is expected to refuse; a reason may say that nothing is timed."""
    verdicts = case.verdict
    return "not_better" in verdicts and "not_confirmed" not in verdicts and case.reason is None


def _files(folder: Path, path: str) -> Iterator[str]:
    """Yield the plain files at or below a kit path, up to a limit."""
    top = folder / path
    if is_linked(folder, path):
        return
    below = entries_below(top, most=MOST_SOURCES)
    found = [top] if top.is_file() else sorted(below) if top.is_dir() else []
    for file in found:
        if file.is_file() and not file.is_symlink():
            yield file.relative_to(folder).as_posix()


def _text(folder: Path, name: str) -> str:
    """Return the start of a file as text; nothing when it is no plain file of the kit's."""
    path = folder / name
    if not path.is_file() or is_linked(folder, name):
        return ""
    with path.open("rb") as file:
        return file.read(MOST_SOURCE).decode("utf-8", "replace")
