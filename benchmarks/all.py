"""Run every benchmark of this folder, one after the other, and let each print its table.

Each is a program of its own that measures our part and its peer interleaved in one run, so
that a busy machine slows both. Name some to run only those: `benchmarks/all.py help spawn`.
"""

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent


def main(names: list[str]) -> int:
    """Run the named benchmarks, or all; return 1 when one failed."""
    found = {path.stem: path for path in sorted(HERE.glob("*.py")) if path != Path(__file__)}
    unknown = [name for name in names if name not in found]
    if unknown:
        print(f"no benchmark {', '.join(unknown)}: there are {', '.join(found)}", file=sys.stderr)
        return 2
    failed = []
    for name in names or found:
        print(f"\n== {name}", flush=True)
        if subprocess.run([sys.executable, str(found[name])], check=False).returncode:
            failed.append(name)
    for name in failed:
        print(f"failed: {name}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
