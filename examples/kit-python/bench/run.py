"""One run: hand the candidate's evaluate() a polynomial and points, write what it returns.

usage: run.py BUILD PARAMS_JSON OUT
"""

import json
import sys
from pathlib import Path

PRIME = 1_000_003


def numbers(count: int, state: int) -> tuple[list[int], int]:
    """Return count numbers below PRIME, and the generator's state after them."""
    found = []
    for _ in range(count):
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        found.append((state >> 33) % PRIME)
    return found, state


def main(build: str, params: str, out: str) -> None:
    """Make the input from the seed, call the candidate, write one number a line."""
    sys.path.append(build)
    import solve  # type: ignore[import-not-found]  # noqa: PLC0415 (the candidate)

    cell = json.loads(Path(params).read_text())
    coefficients, state = numbers(cell["coefficients"], cell["seed"])
    points, _ = numbers(cell["points"], state)
    values = solve.evaluate(coefficients, points, PRIME)
    Path(out, "values.txt").write_text("".join(f"{int(value)}\n" for value in values))


main(*sys.argv[1:])
