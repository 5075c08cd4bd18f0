"""Load a candidate, let it solve one input, write what it says, and print how long it took.

usage: driver.py SOLVE_PY PARAMS_JSON OUT    or    driver.py SOLVE_PY, then one n a line on stdin

The printed time is this process's own: a judge that believes it believes the candidate.
"""

import json
import sys
import time


def main(program: str, params: str = "", out: str = "") -> None:
    """Solve one input, or all that come."""
    sys.path.insert(0, program.rpartition("/")[0])
    import solve  # type: ignore[import-not-found]  # the candidate

    if not params:
        for line in sys.stdin:
            print(solve.solve(int(line)), flush=True)
        return
    with open(params) as file:
        n = json.load(file)["n"]
    began = time.perf_counter()
    found = solve.solve(n)
    took = time.perf_counter() - began
    with open(f"{out}/answer", "w") as file:
        file.write(str(found))
    print(json.dumps({"seconds": took}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
