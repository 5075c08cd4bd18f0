"""Say whether values.txt holds the polynomial's values, worked out again from the seed.

usage: check.py PARAMS_JSON OUT      prints one JSON object as its last line
"""

import json
import sys
from pathlib import Path

PRIME = 1_000_003


def numbers(count: int, state: int) -> tuple[list[int], int]:
    """Return the numbers that bench/run.py makes."""
    found = []
    for _ in range(count):
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        found.append((state >> 33) % PRIME)
    return found, state


def reason(params: str, out: str) -> str | None:
    """Return why the output is wrong, or None."""
    cell = json.loads(Path(params).read_text())
    coefficients, state = numbers(cell["coefficients"], cell["seed"])
    points, _ = numbers(cell["points"], state)
    try:
        with Path(out, "values.txt").open(encoding="ascii") as file:
            lines = file.read(9 * cell["points"]).split("\n")
    except (OSError, UnicodeDecodeError):
        return "the run wrote no values.txt that can be read"
    wrong = 0
    for point, line in zip(points, lines, strict=False):
        value = 0
        for coefficient in reversed(coefficients):
            value = (value * point + coefficient) % PRIME
        wrong += line != str(value)
    if len(lines) != len(points) + 1:
        return f"values.txt does not hold {len(points)} lines"
    return f"{wrong} of {len(points)} values are wrong" if wrong else None


found = reason(sys.argv[1], sys.argv[2])
print(json.dumps({"pass": found is None, "reasons": [found] if found else []}))
