"""Say whether c.bin is the product that the driver should have written.

usage: check.py PARAMS OUT      prints one JSON object as its last line

The inputs are made again from the seed, as bench/driver.c makes them. The product itself is
not: with a random vector x, the sum of weight * A(Bx) must be Cx (Freivalds, 1977). Three
products of matrix and vector instead of one of matrices; a wrong row is missed
once in 2^30. All numbers are integers, so nothing is rounded. It is started after every
run, hence the bare interpreter (-I -S) and no import that takes time.
"""

import sys
from array import array
from operator import mul
from posix import urandom

TABLE, WEIGHTS = 4096, 31
MASK = (1 << 64) - 1


def draws(state: int):  # noqa: ANN201 (typing takes 5 ms to import)
    """Yield the numbers of Knuth's MMIX generator from a seed, as bench/driver.c draws them."""
    while True:
        state = (state * 6364136223846793005 + 1442695040888963407) & MASK
        yield state >> 49


def main(params: str, out: str) -> "str | None":
    """Return why the output is wrong, or None."""
    with open(params) as file:
        named = dict(line.rstrip("\n").split("=", 1) for line in file)
    n, reps = int(named["n"]), int(named["reps"])
    drawn = draws(int(named["seed"]))
    try:
        with open(out + "/c.bin", "rb") as file:
            raw = file.read(8 * n * n + 1)
    except OSError:
        return "the run wrote no c.bin"
    if len(raw) != 8 * n * n:
        return f"c.bin is not {n * n} numbers of 8 bytes"
    table_a, table_b = ([next(drawn) for _ in range(TABLE)] * 2 for _ in range(2))
    x = array("I", urandom(4 * n)).tolist()
    x = [one >> 2 for one in x]
    wanted = [0] * n
    for rep in range(reps):
        starts = [next(drawn) % TABLE for _ in range(2 * n)]
        bx = [sum(map(mul, table_b[at : at + n], x)) for at in starts[n:]]
        weight = 1 + rep % WEIGHTS
        product = [sum(map(mul, table_a[at : at + n], bx)) for at in starts[:n]]
        wanted = [one + weight * more for one, more in zip(wanted, product)]
    c = array("q", raw).tolist()
    found = [sum(map(mul, c[at : at + n], x)) for at in range(0, n * n, n)]
    wrong = [row for row in range(n) if found[row] != wanted[row]]
    if wrong:
        return f"the product is wrong in {len(wrong)} of {n} rows, first in row {wrong[0]}"
    return None


reason = main(sys.argv[1], sys.argv[2])
print('{"pass": true}' if reason is None else f'{{"pass": false, "reasons": ["{reason}"]}}')
