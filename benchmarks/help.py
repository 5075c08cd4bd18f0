"""How long a person waits for `thermite --help`, beside a Python that does nothing.

Aim: at most 6 times `python -c pass`. Both are started in turn, so that whatever else the
machine does meets both; the ratio is taken pair by pair.
"""

import statistics
import subprocess
import sys
import time
from pathlib import Path

PAIRS = 40
AIM = 6.0
ROOT = Path(__file__).parents[1]


def seconds(*argv: str) -> float:
    """Return how long a program takes from start to end."""
    start = time.perf_counter()
    subprocess.run(argv, stdout=subprocess.DEVNULL, check=True, cwd=ROOT)
    return time.perf_counter() - start


def main() -> None:
    """Print the table."""
    help_argv = (sys.executable, "-m", "thermite", "--help")
    nothing_argv = (sys.executable, "-c", "pass")
    seconds(*help_argv)  # writes the .pyc files
    pairs = [(seconds(*help_argv), seconds(*nothing_argv)) for _ in range(PAIRS)]
    for name, times in zip(
        ("thermite --help", "python -c pass"), zip(*pairs, strict=True), strict=True
    ):
        low, middle, high = (1e3 * part for part in statistics.quantiles(times, n=4))
        print(f"{name:<16} {middle:7.1f} ms   middle half {low:.1f} to {high:.1f}")
    low, middle, high = statistics.quantiles([ours / bare for ours, bare in pairs], n=4)
    verdict = "kept" if middle <= AIM else "MISSED"
    spread = f"middle half {low:.2f} to {high:.2f}"
    print(f"{'ratio':<16} {middle:7.2f}      {spread}, aim <= {AIM:g}: {verdict}")


if __name__ == "__main__":
    main()
