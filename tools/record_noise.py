"""Record how a machine times one program again and again: noise for benchmarks/verdicts.py.

    record_noise.py --what "matmul 128, idle, chrt -f 50" --runs 640 --cpu 1 ./program 128 > FILE

The priority is the caller's: start this under `nice` or `chrt`, and the program inherits it.
Each run goes from the call that starts the program to the wait that reaps it, on
CLOCK_MONOTONIC_RAW; its output is thrown away, and the first run isn't counted.
"""

import argparse
import json
import os
import sys
import time

SHARED = os.sched_getaffinity(0)


def run_ns(argv: list[str], cpu: int | None) -> int:
    """Return how long a program runs, ns, pinned to a processor if one is given."""
    nowhere = (os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0)
    # A child starts where its parent may run, so the parent goes there and back.
    if cpu is not None:
        os.sched_setaffinity(0, {cpu})
    start = time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)
    child = os.posix_spawnp(argv[0], argv, os.environ, file_actions=[nowhere])
    if cpu is not None:
        os.sched_setaffinity(0, SHARED - {cpu} or SHARED)
    _, status = os.waitpid(child, 0)
    end = time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)
    code = os.waitstatus_to_exitcode(status)
    if code != 0:
        sys.exit(f"{argv[0]} ended with {code}: noise is recorded of a program that ends well")
    return end - start


def rested_run_ns(asked: argparse.Namespace) -> int:
    """Return how long the program runs after a rest.

    Real-time runs without one are stopped by the kernel for a part of each second, which is
    no noise that a rig's runs see: its own come after a reset and a settling time.
    """
    time.sleep(asked.rest_ms / 1e3)
    return run_ns(asked.argv, asked.cpu)


def main() -> None:
    """Print the recording as JSON."""
    words = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    words.add_argument("--what", required=True, help="program, machine and set-up, in words")
    words.add_argument("--runs", type=int, default=640, help="how often it runs (640)")
    words.add_argument("--cpu", type=int, help="the processor that runs are pinned to")
    words.add_argument("argv", nargs=argparse.REMAINDER, help="the program and its arguments")
    words.add_argument("--rest-ms", type=int, default=0, help="idle time before each run, ms (0)")
    asked = words.parse_args()
    if not asked.argv or asked.runs < 1 or asked.rest_ms < 0:
        words.error("give a program to run, at least once, and no rest below 0")
    run_ns(asked.argv, asked.cpu)
    times = [rested_run_ns(asked) for _ in range(asked.runs)]
    print(json.dumps({"schema_version": 1, "what": asked.what, "t_ns": times}))


if __name__ == "__main__":
    main()
