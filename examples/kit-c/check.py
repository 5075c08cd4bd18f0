"""Say whether sorted.bin holds the numbers of the seed, sorted."""

import json
import sys
from array import array

BLOCK = 65536


def reason(params: str, out: str) -> str | None:
    """Return why the output is wrong, or None."""
    with open(params) as file:
        cell = json.load(file)
    block = []
    state = cell["seed"]
    for _ in range(BLOCK):
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        block.append(state >> 40)
    blocks = range(-(-cell["count"] // BLOCK))
    numbers = [n * (2 * k + 1) & 0xFFFFFF for k in blocks for n in block][: cell["count"]]
    try:
        with open(f"{out}/sorted.bin", "rb") as file:
            raw = file.read(4 * cell["count"] + 1)
    except OSError:
        return "the run wrote no sorted.bin"
    if len(raw) != 4 * cell["count"]:
        return f"sorted.bin does not hold {cell['count']} numbers"
    numbers.sort()
    wrong = sum(a != b for a, b in zip(array("i", raw), numbers))
    return f"{wrong} numbers are not where they belong" if wrong else None


found = reason(sys.argv[1], sys.argv[2])
print(json.dumps({"pass": found is None, "reasons": [found] if found else []}))
