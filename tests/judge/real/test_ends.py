"""How programs end: the reason is a shell's number, the note says what that number means.

The ids are rows of the list of known faults. One real program does each end in a cell of its own.
"""

import pytest

from tests.judge.real.workshop import FAST, HEAD, Workshop, alone, change, wanted
from tests.requirement import shows
from thermite.schema.event import Run
from thermite.schema.job import Revision

ENDS = {
    "abort": ("abort();", 134, "SIGABRT"),
    "null-write": ("*(volatile int *)0 = 1;", 139, "SIGSEGV"),
    "kills-itself": ("raise(SIGKILL);", 137, "SIGKILL"),
    "terminates-itself": ("raise(SIGTERM);", 143, "SIGTERM"),
    "exit-255": ("_exit(255);", 255, None),
    "exit-124": ("_exit(124);", 124, None),
    "arithmetic": ("divide();", 136, "SIGFPE"),
    "bus-error": ("beyond_the_file();", 135, "SIGBUS"),
    "stack-overflow": ("n += deeper(n);", 139, "SIGSEGV"),
    "exit-0-with-a-core": ("leave_a_core();", 0, None),
    "exit-137": ("_exit(137);", 137, "SIGKILL"),
    "illegal-instruction": ("lacks();", 132, "SIGILL"),
    "trap": ("raise(SIGTRAP);", 133, "SIGTRAP"),
    "refused-call": ("raise(SIGSYS);", 159, "SIGSYS"),
}
OWN_CALLS = """
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
"""
OWN_WAYS = """
static void lacks(void) {
#if defined __x86_64__
    __asm__ volatile("ud2");
#elif defined __aarch64__
    __asm__ volatile(".inst 0");
#else
    raise(SIGILL);
#endif
}
static void divide(void) {
    volatile int zero = 0, some = 7;
    some = some / zero;
    raise(SIGFPE);  /* a processor for which that is a number */
}
static void beyond_the_file(void) {
    int file = open("short", O_CREAT | O_RDWR, 0600);
    volatile char *seen = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    seen[0] = 1;
}
static unsigned long deeper(unsigned long n) {
    volatile char much[1 << 16];
    much[0] = n;
    return much[0] ? much[0] + deeper(n) : deeper(n + 1) + much[0];
}
static void leave_a_core(void) {
    struct rlimit most = {RLIM_INFINITY, RLIM_INFINITY};
    if (setrlimit(RLIMIT_CORE, &most) == 0) _exit(9);
    int status, child = fork();
    if (child == 0) abort();
    waitpid(child, &status, 0);
    if (!WIFSIGNALED(status) || WCOREDUMP(status)) _exit(8);
}
"""
CASES = "\n".join(f"case {at}: {does} break;" for at, (does, *_) in enumerate(ENDS.values(), 1))
EVERY_END = "".join(
    [
        HEAD,
        OWN_CALLS,
        OWN_WAYS,
        "unsigned long sum(unsigned long n) {\n",
        f"switch (n) {{ {CASES} }}\n",
        "return n * (n - 1) / 2;\n}",
    ]
)


MEANING = {
    "SIGILL": "it executed an instruction that this processor lacks",
    "SIGABRT": "it gave up by itself, as abort() does",
    "SIGBUS": "it used memory whose file has no such part",
    "SIGFPE": "it divided by zero",
    "SIGKILL": "no limit of the kit ended it",
    "SIGSEGV": "it read or wrote where nothing is, or its stack ran over",
    "SIGTERM": "no limit of the kit ended it",
    "SIGTRAP": "it came to a trap",
    "SIGSYS": "it made a system call that no stage may make",
}


def note_of(code: int, name: str) -> str:
    unless = "unless the program chose that number"
    return f"exit {code} means {name}, {unless}: {MEANING[name]}"


@pytest.fixture
def every_end(bench: Workshop) -> Revision:
    """A candidate that ends another way in each cell of the kit."""
    change(bench, "cells", **{end: {"n": at, "work": 1} for at, end in enumerate(ENDS, 1)})
    return bench.commit({"sum.c": EVERY_END})


@pytest.mark.parametrize("end", [pytest.param(end, id=f"B6-{end}") for end in ENDS])
def test_a_program_ends_as_it_ended_and_no_limit_is_blamed(
    bench: Workshop, every_end: Revision, end: str
) -> None:
    _, code, signal_name = ENDS[end]
    verdict = alone(bench, every_end, end)
    (run,) = bench.of(Run)
    if code == 0:
        assert (verdict.verdict, run.outcome) == ("valid", "ok"), verdict.reasons
    else:
        assert (verdict.verdict, verdict.reasons) == ("crash_candidate", [f"exit {code}:"])
        assert run.outcome == "run_exited"
    told = [note for note in verdict.notes if note.startswith(("exit ", "the kit's limit"))]
    assert told == ([] if signal_name is None else [note_of(code, signal_name)])


@shows("B3")
def test_a_champion_that_this_processor_cannot_execute_promotes_nobody(
    bench: Workshop, every_end: Revision
) -> None:
    asked = wanted(cells=["illegal-instruction"], held_out_cells=[])
    verdict = bench.judged(FAST, champion=every_end, contract=asked)
    assert (verdict.verdict, verdict.gain) == ("crash_infra", None)
    assert verdict.reasons == ["the champion failed in cell illegal-instruction: exit 132:"]
    assert verdict.notes == [note_of(132, "SIGILL")]
    assert [run.arm for run in bench.of(Run)] == ["champion"]
