"""Run a check that speaks by its exit code, and print the line that a judge reads.

usage: result.py PROGRAM ARGUMENT...

Exit 0 passes; any other exit fails, with the end of what the check said as the reason. A check
that exits 0 and prints a JSON object with `pass` as its last line speaks for itself: that
line is passed on as it is, so it can report numbers too.
"""

import json
import subprocess
import sys
import threading
from typing import IO

KEPT = 64 << 10  # bytes of each stream that are kept, from its end, as a judge keeps them
SHOWN = 1500  # characters of the last output that a reason repeats


def keep_end(stream: IO[bytes], kept: bytearray) -> None:
    """Read a stream to its end and keep the last of it."""
    while part := stream.read(KEPT):
        kept += part
        del kept[:-KEPT]


def run(argv: list[str]) -> tuple[int, bytes, bytes]:
    """Run the check; return its exit code as a shell gives it, and the ends of both streams."""
    try:
        check = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
    except OSError as why:
        return (126 if isinstance(why, PermissionError) else 127), b"", str(why).encode()
    assert check.stdout is not None and check.stderr is not None  # noqa: PT018, S101 (both are pipes)
    out, err = bytearray(), bytearray()
    readers = [
        threading.Thread(target=keep_end, args=both)
        for both in ((check.stdout, out), (check.stderr, err))
    ]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()
    code = check.wait()
    return (code if code >= 0 else 128 - code), bytes(out), bytes(err)


def own_result(stdout: bytes) -> str | None:
    """Return the last line, when it is a JSON object with `pass`."""
    line = stdout.rstrip().rpartition(b"\n")[2]
    try:
        text = line.decode("utf-8")
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return text if isinstance(found, dict) and "pass" in found else None


def main(argv: list[str]) -> str:
    """Return the result line."""
    code, stdout, stderr = run(argv)
    if code == 0:
        return own_result(stdout) or json.dumps({"pass": True})
    said = (stderr if stderr.strip() else stdout).decode("utf-8", "replace").rstrip()[-SHOWN:]
    return json.dumps({"pass": False, "reasons": [f"the check exited {code}: {said}".rstrip()]})


print(main(sys.argv[1:]))
