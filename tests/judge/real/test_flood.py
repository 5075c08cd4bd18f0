"""B9: output without an end, and output that is cut in the midst of a character."""

import contextlib
import threading
from collections.abc import Iterator

import psutil
import pytest

from tests.judge.real.workshop import Workshop, alone, change
from tests.requirement import shows
from thermite.judge.verdict.reason import LOG_BUDGET

MIB = 1 << 20
ENDLESS = "import os\nsaid = b'o' * 65536\nwhile True: os.write({fd}, said)\n"
GROWTH = 16 * MIB
"""Most that a process may grow by while 1,024 MiB are said to it."""


class Peaks:
    """The most memory of this process and each below it, and of disk, while something goes on."""

    def __init__(self, bench: Workshop) -> None:
        self._bench = bench
        self._over = threading.Event()
        self.memory: dict[int, int] = {}
        self.disk = 0
        self.sample()
        self.before, self.disk_before = dict(self.memory), self.disk

    def sample(self) -> None:
        me = psutil.Process()
        for one in (me, *me.children(recursive=True)):
            with contextlib.suppress(psutil.NoSuchProcess):
                self.memory[one.pid] = max(self.memory.get(one.pid, 0), one.memory_info().rss)
        with contextlib.suppress(FileNotFoundError):
            files = self._bench.folder.rglob("*")
            self.disk = max(self.disk, sum(file.lstat().st_blocks * 512 for file in files))

    def _watch(self) -> None:
        while not self._over.wait(0.05):
            self.sample()

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        thread = threading.Thread(target=self._watch)
        thread.start()
        try:
            yield
        finally:
            self._over.set()
            thread.join()

    def assert_flat(self) -> None:
        fresh = max(self.before.values())  # what is begun meanwhile may be a fork of any
        grown = {pid: most - self.before.get(pid, fresh) for pid, most in self.memory.items()}
        assert {pid: more for pid, more in grown.items() if more > GROWTH} == {}
        assert self.disk - self.disk_before < 4 * MIB


FLOODS = [
    pytest.param("build", 1, f"build: build killed (disk)\n{'o' * LOG_BUDGET}", id="B9-build"),
    pytest.param("run", 2, "killed: disk", id="B9-run"),
    pytest.param(
        "check",
        2,
        f"check produced no result (exit 137): {'o' * 463}…{'o' * 1500}",
        id="B9-check",
    ),
]


@pytest.mark.parametrize(("where", "stream", "said"), FLOODS)
def test_output_without_an_end_fills_neither_memory_nor_disk(
    bench: Workshop, where: str, stream: int, said: str
) -> None:
    assert alone(bench).verdict == "valid"  # what follows is built, unless that is the flood
    change(bench, where, timeout_s=200, command=["python3", "-c", ENDLESS.format(fd=stream)])
    peaks = Peaks(bench)
    with peaks.watched():
        verdict = alone(bench)
    assert verdict.reasons == [said]
    peaks.assert_flat()


ESC = "\033[2J"
ODD = [
    pytest.param("é", "x", "\ufffd" + "é" * 32767 + "x", id="B9-half a character"),
    pytest.param("\0", "", "\\x00" * 65536, id="B9-NULs"),
    pytest.param(ESC, "", "\\x1b[2J" * 16384, id="B9-escape sequences"),
    pytest.param("\033[2J", "é", "2J" + "\\x1b[2J" * 16383 + "é", id="B9-half a sequence"),
]


def saying(unit: str, last: str, then: str) -> list[str]:
    """A program that says a mebibyte of something on both streams."""
    times = MIB // len(unit.encode())
    says = f"said = ({unit!r} * {times} + {last!r}).encode()\n"
    both = "for s in (sys.stdout, sys.stderr):\n    s.buffer.write(said)\n    s.flush()\n"
    return ["python3", "-c", f"import os, sys\n{says}{both}{then}"]


@pytest.mark.parametrize(("unit", "last", "kept"), ODD)
def test_the_end_of_odd_output_is_kept_and_shown(
    bench: Workshop, unit: str, last: str, kept: str
) -> None:
    whole = f"exit 3: {kept}"
    change(bench, "run", command=saying(unit, last, "os._exit(3)"))
    assert alone(bench).reasons == [f"{whole[:500]}…{whole[-1500:]}"]


@shows("B9")
def test_a_check_and_a_build_are_heard_behind_half_a_character(bench: Workshop) -> None:
    right = "print('{\"pass\": true}')"
    change(bench, "check", command=saying("é", "x", f"print()\n{right}"))
    assert alone(bench).verdict == "valid"
    change(bench, "check", command=saying("é", "x", right))
    assert alone(bench).reasons[0].startswith("check produced no result (exit 0): \ufffdé")
    change(bench, "build", command=saying("é", "x", "os._exit(3)"))
    assert alone(bench).reasons == [f"build: build failed (exit 3)\n{'é' * 1499}x"]
