"""P5: sparse files, terabytes by their size and nothing by their blocks, as build and run outputs.

The whole of the rig's folder is weighed by blocks before and after: a copy fills no disk.
"""

from pathlib import Path

import pytest

from tests.judge.real.workshop import Workshop, alone, change, doing
from thermite.schema.event import Run

ROOM = 4 << 20
"""More than the sources, builds and records of one judge take, less than any of the files here."""
MANY = "for i in 1 2 3; do truncate -s 40M out/$i; done"


def weight(folder: Path) -> int:
    return sum(path.lstat().st_blocks * 512 for path in folder.rglob("*"))


@pytest.mark.parametrize(
    ("command", "said", "note"),
    [
        pytest.param(
            ["sh", "-c", "mkdir out; truncate -s 1T out/bench"],
            "build: build failed (exit 153)",
            "exit 153 means SIGXFSZ, unless the program chose that number:"
            " a file was to grow over the kit's limit: build.disk_mib is 64",
            id="P5-of 1 TiB in a shell",
        ),
        pytest.param(
            ["truncate", "-s", "1T", "bench"],
            "build: build killed (disk)",
            "the kit's limit: build.disk_mib is 64",
            id="P5-of 1 TiB by itself",
        ),
        pytest.param(
            ["sh", "-c", f"mkdir out; {MANY}"],
            "build: build outputs refused: out/2 takes the outputs over 67108864 bytes (64 MiB)",
            None,
            id="P5-of 40 MiB three times",
        ),
    ],
)
def test_a_sparse_output_of_a_build_is_refused_and_takes_no_disk(
    bench: Workshop, command: list[str], said: str, note: str | None
) -> None:
    change(bench, "build", command=command, outputs=["out"])
    before = weight(bench.folder)
    verdict = alone(bench)
    assert verdict.verdict in {"invalid", "crash_candidate"}
    assert verdict.reasons[0].partition("\n")[0] == said
    assert [one for one in verdict.notes if "limit" in one] == ([] if note is None else [note])
    assert weight(bench.folder) - before < ROOM


CALLS = "#include <errno.h>\n#include <fcntl.h>\n#include <signal.h>\n"
WEIGHS = """
import json, pathlib, sys
found = pathlib.Path(sys.argv[2], "sparse").stat()
print(json.dumps({"pass": False, "reasons": [f"{found.st_size >> 20} {found.st_blocks * 512}"]}))
"""


def leaving(makes: str) -> str:
    """A candidate that leaves a sparse file."""
    return CALLS + doing(f'int s = open("out/sparse", O_CREAT | O_RDWR, 0600); {makes}')


@pytest.mark.parametrize(
    ("makes", "said"),
    [
        pytest.param("ftruncate(s, 17L << 30);", "killed: disk", id="P5-of 17 GiB"),
        pytest.param(
            "signal(SIGXFSZ, SIG_IGN); if (ftruncate(s, 17L << 30)) exit(errno);",
            "exit 27:",
            id="P5-of 17 GiB by one that ignores the signal",
        ),
        pytest.param(
            'ftruncate(s, 6L << 20); ftruncate(open("out/too", O_CREAT | O_RDWR, 0600), 6L << 20);',
            "outputs refused: out/too takes the outputs over 8388608 bytes (8 MiB)",
            id="P5-of 6 MiB twice",
        ),
    ],
)
def test_a_sparse_output_of_a_run_is_refused_and_takes_no_disk(
    bench: Workshop, makes: str, said: str
) -> None:
    candidate = bench.commit({"sum.c": leaving(makes)})
    before = weight(bench.folder)
    verdict = alone(bench, candidate)
    assert verdict.reasons == [said]
    assert weight(bench.folder) - before < ROOM
    assert bench.of(Run)[0].isolation.proof.survivors == 0


def test_P5_a_sparse_output_that_the_kit_allows_is_copied_without_filling_a_disk(  # noqa: N802
    bench: Workshop,
) -> None:
    change(bench, "run", disk_mib=256)
    (bench.kit / "check.py").write_text(WEIGHS)
    verdict = alone(bench, leaving("ftruncate(s, 128L << 20);"))
    size, blocks = map(int, verdict.reasons[0].split())
    assert size == 128
    assert blocks < ROOM
