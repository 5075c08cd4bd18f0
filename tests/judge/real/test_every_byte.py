"""B13: all 256 byte values on both streams of build, run and check, in locale C and C.UTF-8."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.judge.real.workshop import KIT_FILES, MANIFEST, Workshop, alone, doing, write
from tests.requirement import shows
from thermite.schema.event import Build, Run

EVERY = bytes(range(256))
SAYS = "for (int i = 0; i < 256; i++) { char b = i; write(1, &b, 1); write(2, &b, 1); }"
LOUD = {
    **KIT_FILES,
    "bench/build.sh": "python3 .kit/bench/every.py\n" + KIT_FILES["bench/build.sh"],
    "bench/every.py": "import sys\nfor s in (sys.stdout, sys.stderr):\n"
    "    s.buffer.write(bytes(range(256)) + b'\\n')\n    s.flush()\n",
    "check.py": "import os, sys\nexec(open('bench/every.py').read())\n"
    "if os.path.exists(sys.argv[2] + '/silent'): sys.exit(5)\n" + KIT_FILES["check.py"],
}
SHOWN = (
    "".join(f"\\x{byte:02x}" for byte in range(9))
    + "\t\n"
    + "".join(f"\\x{byte:02x}" for byte in range(11, 32))
    + bytes(range(32, 127)).decode()
    + "\\x7f"
    + "\ufffd" * 128
)
"""What a terminal obeys is shown by its number; what is no UTF-8 as U+FFFD (D35)."""

HEARD = doing(SAYS)
FAILS = {
    "build": "int sum(",
    "run": doing(f"{SAYS} exit(3);"),
    "check": doing(f'{SAYS} fclose(fopen("out/silent", "w"));'),
}
REASONS = {
    "build": f"build: build failed (exit 1)\n{SHOWN}\n{SHOWN}\n",
    "run": f"exit 3: {SHOWN}",
    "check": f"check produced no result (exit 5): {SHOWN}",
}


@pytest.fixture
def loud(bench: Workshop) -> Workshop:
    """The workshop with a kit that says every byte as well."""
    write(bench.kit, LOUD)
    return bench


@pytest.mark.parametrize("where", [pytest.param(name, id=f"B13-{name}") for name in FAILS])
def test_every_byte_is_shown_escaped_and_the_next_one_is_still_heard(
    loud: Workshop, where: str
) -> None:
    failed = alone(loud, FAILS[where])
    kept = loud.of(Build if where == "build" else Run)[-1].reason
    assert kept == failed.reasons[0]
    assert kept.startswith(REASONS[where])
    assert alone(loud, f"/* after {where} */{HEARD}").verdict == "valid"
    assert [build.cached for build in loud.of(Build)] == [False, False]


C = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}


def judged(kit: Path, project: Path, locale: dict[str, str], *args: str) -> tuple[int, bytes]:
    argv = [sys.executable, "-m", "thermite", "judge", str(project), "--kit", str(kit), *args]
    done = subprocess.run(argv, env=os.environ | locale, capture_output=True, check=False)
    assert b"Traceback" not in done.stderr
    return done.returncode, done.stdout


@shows("B13")
def test_a_judge_in_any_locale_says_the_same_of_every_byte(tmp_path: Path) -> None:
    kit, project = tmp_path / "kit", tmp_path / "fails"
    write(kit, {**LOUD, "kit.json": json.dumps(MANIFEST)})
    write(project, {"sum.c": FAILS["run"]})
    for locale in (C, {"LC_ALL": "C.UTF-8"}):
        code, said = judged(kit, project, locale, "--json")
        assert (code, json.loads(said)["reasons"]) == (1, [REASONS["run"]])
    code, said = judged(kit, project, C)
    assert code == 1
    assert rb"exit 3: \x00\x01" in said
    assert not set(said) & (set(range(32)) - {9, 10})
