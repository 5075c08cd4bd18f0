"""What reading 1,000 manifests costs beside `json.loads` of the same bytes; and one check's start.

Both read the same manifests in turn, in the processor time of this process; the ratio is taken
round by round. `thermite kit check` of one kit is held against `python -c pass`.
"""

import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

from thermite.kit.manifest import read_manifest
from thermite.schema.kit import Kit

MANIFESTS = 1000
ROUNDS = 15
PAIRS = 15
ROOT = Path(__file__).parents[1]
KIT = ROOT / "kits" / "smoke-cpu"


def manifests() -> list[bytes]:
    """Return manifests that differ in their names, as bytes."""
    whole = json.loads((KIT / "kit.json").read_text())
    return [json.dumps(whole | {"name": f"kit-{i}"}).encode() for i in range(MANIFESTS)]


def seconds(*argv: str) -> float:
    """Return how long a program takes from start to end."""
    start = time.perf_counter()
    subprocess.run(argv, stdout=subprocess.DEVNULL, check=True, cwd=ROOT)
    return time.perf_counter() - start


def main() -> None:
    """Print the table."""
    raws = manifests()
    ours, bare = [], []
    for _ in range(ROUNDS):
        start = time.process_time()
        if not all(isinstance(read_manifest(raw), Kit) for raw in raws):
            sys.exit("a manifest that has no problem was refused")
        middle = time.process_time()
        for raw in raws:
            json.loads(raw)
        ours.append(middle - start)
        bare.append(time.process_time() - middle)
    print(f"{MANIFESTS} manifests: read and checked {1e3 * statistics.median(ours):7.1f} ms of CPU")
    print(f"{MANIFESTS} manifests: json.loads       {1e3 * statistics.median(bare):7.1f} ms of CPU")
    ratio = statistics.median(a / b for a, b in zip(ours, bare, strict=True))
    print(f"ratio {ratio:.1f}")
    check = (sys.executable, "-m", "thermite", "kit", "check", str(KIT))
    nothing = (sys.executable, "-c", "pass")
    seconds(*check)  # writes the .pyc files
    pairs = [(seconds(*check), seconds(*nothing)) for _ in range(PAIRS)]
    whole, start_up = (statistics.median(times) for times in zip(*pairs, strict=True))
    print(f"kit check of one {1e3 * whole:.0f} ms, python -c pass {1e3 * start_up:.0f} ms")


if __name__ == "__main__":
    main()
