"""Faults that judges like this one had in public, each from its smallest input.

The ids are the rows of the list of known faults; the kit is broken here, the candidate honest.
"""

import unicodedata
from typing import Literal

import psutil
import pytest

from tests.judge.real.workshop import (
    FAST,
    KIT_FILES,
    Workshop,
    alone,
    change,
    doing,
)
from tests.requirement import shows
from thermite.kit.examine import examine
from thermite.schema.event import Run

Form = Literal["NFC", "NFD"]
RIGHT = "print('{\"pass\": true}')"


def script(bench: Workshop, path: str, text: str, mode: int = 0o755) -> None:
    (bench.kit / path).write_bytes(text.encode())
    (bench.kit / path).chmod(mode)


BAD_CHECKS = [
    pytest.param("import os; os.kill(os.getpid(), 11)", "(exit 139):", id="B11-segfault"),
    pytest.param("import sys; sys.stderr.write('why')", "(exit 0): why", id="B11-silent"),
    pytest.param(f"{RIGHT[:-1]} + '{{}}')", "(exit 0):", id="B11-two-objects-on-a-line"),
    pytest.param(f"{RIGHT}\nprint('[]')", "(exit 0):", id="B11-two-lines-the-last-is-none"),
    pytest.param(f"{RIGHT}\nimport time; time.sleep(60)", "(exit 137):", id="B11-hang"),
]


@pytest.mark.parametrize(("text", "said"), BAD_CHECKS)
def test_a_check_that_fails_ends_one_attempt_and_is_run_once(
    bench: Workshop, text: str, said: str
) -> None:
    (bench.kit / "check.py").write_text(text)
    change(bench, "check", timeout_s=1)
    verdict = alone(bench)
    assert (verdict.verdict, verdict.reasons) == (
        "invalid",
        [f"check produced no result {said}"],
    )
    assert len(bench.of(Run)) == 1


@pytest.mark.parametrize(("text", "said"), BAD_CHECKS)
def test_a_check_that_fails_for_the_champion_is_infrastructure_in_its_own_words(
    bench: Workshop, text: str, said: str
) -> None:
    (bench.kit / "check.py").write_text(text)
    change(bench, "check", timeout_s=1)
    verdict = bench.judged(FAST)
    assert verdict.verdict == "crash_infra"
    (why,) = verdict.reasons
    assert why.startswith("the champion failed in cell ")
    assert why.endswith(f"check produced no result {said}")
    assert [run.arm for run in bench.of(Run)] == ["champion"]


def test_B11_what_a_check_leaves_behind_is_gone_with_it(bench: Workshop) -> None:  # noqa: N802
    mark = "987654"
    daemon = f"import subprocess\nsubprocess.Popen(['setsid', 'sleep', '{mark}'])\n{RIGHT}"
    (bench.kit / "check.py").write_text(daemon)
    assert alone(bench).verdict == "valid"
    left = [one for one in psutil.process_iter(["cmdline"]) if mark in (one.info["cmdline"] or ())]
    assert left == []


NOT_EXECUTABLE = "it is not executable (chmod +x)"
CARRIAGE_RETURN = "its line 1 ends with a carriage return: save it with Unix line ends"


@pytest.mark.parametrize("section", ["build", "check", "run"])
@pytest.mark.parametrize(
    ("text", "mode", "said", "why"),
    [
        pytest.param(
            "#!/bin/sh\n",
            0o644,
            "Permission denied",
            NOT_EXECUTABLE,
            id="B12-B17-not-executable",
        ),
        pytest.param(
            "#!/bin/sh\r\necho\r\n",
            0o755,
            "No such file or directory",
            CARRIAGE_RETURN,
            id="B17-carriage-return",
        ),
        pytest.param(
            "#!/usr/bin/nonesuch -x\n",
            0o755,
            "No such file or directory",
            "its interpreter /usr/bin/nonesuch is not there",
            id="B12-shebang",
        ),
    ],
)
def test_a_program_of_the_kit_that_does_not_start_is_no_candidates_fault(
    bench: Workshop, section: str, text: str, mode: int, said: str, why: str
) -> None:
    script(bench, "bench/own.sh", text, mode)
    word = ".kit/bench/own.sh" if section == "build" else "{kit:bench/own.sh}"
    if section == "run":
        change(bench, "run", copy=["bench/own.sh"])
    change(bench, section, command=[word])
    verdict = alone(bench)
    assert (verdict.verdict, verdict.reasons) == (
        "crash_infra",
        [f"the kit's {section} can't be executed: {word}: {said}: {why}"],
    )
    warned = f"{section}.command: bench/own.sh can't be executed: {why}"
    assert warned in examine(bench.kit).warnings


@pytest.mark.parametrize("section", ["build", "check"])
def test_B12_a_program_that_the_machine_lacks_is_no_candidates_fault(  # noqa: N802
    bench: Workshop, section: str
) -> None:
    change(bench, section, command=["nonesuch"])
    verdict = alone(bench)
    assert (verdict.verdict, verdict.reasons) == (
        "crash_infra",
        [f"the kit's {section} can't be executed: nonesuch: No such file or directory"],
    )


def test_B12_a_file_that_the_kit_lacks_is_no_candidates_fault(bench: Workshop) -> None:  # noqa: N802
    change(bench, "build", copy=["bench", "nonesuch"])
    verdict = alone(bench)
    assert (verdict.verdict, verdict.reasons) == (
        "crash_infra",
        ["kit build.copy: nonesuch is not in the kit"],
    )


def test_B12_a_program_that_the_candidate_brings_is_its_own(bench: Workshop) -> None:  # noqa: N802
    change(bench, "build", command=["./make.sh"])
    verdict = alone(bench)
    assert (verdict.verdict, verdict.reasons) == (
        "invalid",
        ["build: build failed (exit 127)\ncannot execute ./make.sh: No such file or directory"],
    )


def test_B17_carriage_returns_under_a_shell_are_warned_of(bench: Workshop) -> None:  # noqa: N802
    crlf = KIT_FILES["bench/build.sh"].replace("\n", "\r\n")
    (bench.kit / "bench/build.sh").write_bytes(crlf.encode())
    (warned,) = examine(bench.kit).warnings
    assert warned == (
        "build.command: bench/build.sh has carriage returns at its line ends, which sh takes as"
        " part of each line: save it with Unix line ends"
    )
    not_built_yet = bench.commit({"sum.c": f"/* carriage returns */{FAST}"})
    verdict = bench.judged(FAST, champion=not_built_yet)
    assert verdict.verdict == "crash_infra"
    assert verdict.reasons[0].startswith("the champion's build failed: build: build failed (exit")


TOO_LITTLE = (
    "run.rss_mib: 1 MiB are too little to start anything: a shell takes 2 MiB, a Python 10 MiB;"
    " give 16 or more"
)


def test_B16_a_memory_limit_below_what_starting_takes_is_said_aloud(  # noqa: N802
    bench: Workshop,
) -> None:
    assert examine(bench.kit).warnings == []
    change(bench, "run", rss_mib=1)
    assert examine(bench.kit).warnings == [TOO_LITTLE]
    slow = {"sum.c": doing("usleep(400000);")}
    verdict = bench.judged(FAST, champion=bench.commit(slow))
    assert verdict.verdict == "crash_infra"
    assert verdict.reasons == ["the champion failed in cell small: killed: memory", TOO_LITTLE]


def test_B16_a_time_limit_names_itself_and_not_the_program(bench: Workshop) -> None:  # noqa: N802
    change(bench, "run", timeout_s=1)
    slow = bench.commit({"sum.c": doing("sleep(3);")})
    assert bench.judged(FAST, champion=slow).reasons == [
        "the champion failed in cell small: killed: timeout"
    ]


@pytest.mark.parametrize(
    ("declared", "made"),
    [
        pytest.param("NFC", "NFD", id="P8-declared-composed"),
        pytest.param("NFD", "NFC", id="P8-declared-decomposed"),
    ],
)
def test_an_output_in_another_spelling_is_missing_and_both_are_shown(
    bench: Workshop, declared: Form, made: Form
) -> None:
    name, other = (unicodedata.normalize(form, "out/é") for form in (declared, made))
    change(bench, "build", outputs=["out/bench", name])
    with (bench.kit / "bench/build.sh").open("a") as build:
        build.write(f"echo x > '{other}'\n")
    verdict = alone(bench)
    assert verdict.verdict == "invalid"
    spelt, beside = (
        "".join(chr(b) if b < 128 else f"\\x{b:02x}" for b in one.encode()) for one in (name, other)
    )
    (why,) = verdict.reasons
    assert why == (
        f"build: build outputs missing: {spelt} (there is {beside.removeprefix('out/')},"
        " which only looks the same)"
    )


@pytest.mark.parametrize(
    ("does", "words"),
    [
        pytest.param(
            'for (;;) if (write(1, "o", 1) < 0) break;',
            "the kit's limit: run.timeout_s is 1",
            id="C8-time",
        ),
        pytest.param(
            'FILE *f = fopen("out/more", "w"); char k[1024] = {0};'
            " for (int i = 0; i < 4096; i++) fwrite(k, 1, 1024, f); fclose(f);",
            "the kit's limit: run.disk_mib is 3",
            id="C8-disk",
        ),
    ],
)
def test_the_limit_that_applied_is_printed_and_not_the_built_in_one(
    bench: Workshop, does: str, words: str
) -> None:
    change(bench, "run", timeout_s=1, disk_mib=3)
    verdict = alone(bench, doing(does))
    assert any(words in text for text in (*verdict.reasons, *verdict.notes))


@pytest.mark.parametrize(
    "does",
    [
        pytest.param(
            "static volatile char a[700 << 20];"
            " for (long i = 0; i < 700 << 20; i += 4096) a[i] = 1; usleep(400000);",
            id="B4-a static array touched at once",
        ),
        pytest.param(
            "for (;;) { char *p = malloc(1 << 20); if (!p) abort();"
            " for (long i = 0; i < 1 << 20; i += 4096) p[i] = 1; }",
            id="B4-a loop of malloc",
        ),
    ],
)
def test_too_much_memory_is_called_so_and_no_bare_exit_code(bench: Workshop, does: str) -> None:
    change(bench, "run", rss_mib=64)
    verdict = alone(bench, doing(does))
    assert verdict.verdict == "crash_candidate"
    assert any("killed: memory" in text for text in verdict.reasons), verdict.reasons
    assert any("run.rss_mib is 64" in text for text in (*verdict.reasons, *verdict.notes))


@shows("U12")
def test_a_compiler_a_run_and_a_check_that_warn_and_succeed_have_succeeded(bench: Workshop) -> None:
    script(bench, "check.py", f"import sys; sys.stderr.write('error: no'); {RIGHT}")
    warning = '#warning "error: this is odd"\n'
    verdict = alone(bench, warning + doing('fputs("fatal: core dumped", stderr);'))
    assert (verdict.verdict, verdict.reasons) == ("valid", [])


@shows("R4")
def test_the_kits_own_files_build_whatever_a_candidate_brings_of_their_names(
    bench: Workshop,
) -> None:
    weakened = {"bench/build.sh": "exit 7\n", "bench/driver.c": "int main() { return 0; }\n"}
    assert alone(bench, {"sum.c": FAST, **weakened}).verdict == "valid"


@shows("R2")
def test_a_build_finds_no_history_of_its_project(bench: Workshop) -> None:
    bench.commit({"sum.c": f"/* canary */ {FAST}"})
    looks = "ls -A; git log --all 2>/dev/null || echo no history; exit 1"
    change(bench, "build", command=["sh", "-c", looks])
    (reason,) = alone(bench, {"sum.c": FAST}).reasons
    assert reason.splitlines()[1:] == [".kit", "sum.c", "no history"]
