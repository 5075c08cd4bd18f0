# ruff: noqa: E501 (a row of the table is a line)
"""`kit new`: what it writes works; a described kit's check speaks by its exit code."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kits.bench import build, judged
from thermite.control.new_kit import Description, describe_kit, new_kit
from thermite.errors import KitError, UsageError
from thermite.kit.doubts import doubts
from thermite.kit.examine import examine
from thermite.kit.known import known_names, read_expectation
from thermite.kit.manifest import load_kit
from thermite.schema.expectation import Expectation

ROOT = Path(__file__).parents[2]
WRAPPER = ROOT / "examples/kit-described/result.py"


@pytest.mark.parametrize("language", ["c", "python"])
def test_a_new_kit_is_clean_and_tells_right_from_wrong(language: str, tmp_path: Path) -> None:
    kit = tmp_path / "mine"
    new_kit("mine", language, kit)
    found = examine(kit)
    assert (found.problems, found.warnings) == ([], [])
    assert found.kit is not None
    assert found.kit.name == "mine"
    assert doubts(found.kit, kit) == []
    for name in ["base", *known_names(kit)]:
        source = tmp_path / name
        assert build(kit, name, source).returncode == 0
        right = judged(kit, source, "held")["pass"]
        assert right is not name.startswith("wrong")


def test_every_known_candidate_of_a_new_kit_has_its_verdict(tmp_path: Path) -> None:
    for language in ("c", "python"):
        kit = tmp_path / language
        new_kit("mine", language, kit)
        for name in known_names(kit):
            raw = (kit / "candidates" / name / "expect.toml").read_bytes()
            assert isinstance(read_expectation(raw, set()), Expectation)


def test_nothing_is_overwritten_and_names_are_names(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    with pytest.raises(UsageError, match="is there already"):
        new_kit("mine", "c", tmp_path / "there")
    with pytest.raises(UsageError, match="is no name of a kit"):
        new_kit("../mine", "c", tmp_path / "new")
    with pytest.raises(UsageError, match="no kit in 'cobol'"):
        new_kit("mine", "cobol", tmp_path / "new")
    assert [one.name for one in tmp_path.iterdir()] == ["there"]


def test_a_described_kit_is_three_commands_with_a_wrapped_check(tmp_path: Path) -> None:
    described = Description(
        build=["make", "x"],
        outputs=["x"],
        run=["{build:x}", "{out}"],
        check=["cmp", "{out:a}", "{kit:b}"],
    )
    describe_kit("mine", described, tmp_path / "mine")
    kit = load_kit(tmp_path / "mine")
    assert kit.check.command == ["python3", "{kit:result.py}", "cmp", "{out:a}", "{kit:b}"]
    assert kit.cells == {"all": {}}
    assert (tmp_path / "mine/result.py").read_bytes() == WRAPPER.read_bytes()


def test_a_description_that_makes_no_kit_is_refused_whole(tmp_path: Path) -> None:
    described = Description(build=["make"], outputs=["../x"], run=["{kit:y}"], check=[""])
    with pytest.raises(KitError) as caught:
        describe_kit("mine", described, tmp_path / "mine")
    assert str(caught.value).count(";") == 1
    assert not (tmp_path / "mine").exists()


def wrapped(*argv: str) -> tuple[int, str]:
    """Return the wrapper's exit code and the last line that it prints."""
    done = subprocess.run(
        [sys.executable, str(WRAPPER), *argv], capture_output=True, timeout=60, check=False
    )
    return done.returncode, done.stdout.decode().splitlines()[-1]


def python(code: str) -> tuple[str, ...]:
    return sys.executable, "-c", code


@pytest.mark.parametrize(
    ("argv", "result"),
    [
        pytest.param(("true",), {"pass": True}, id="K-145-exit-0-silent"),
        pytest.param(("sh", "-c", "echo fine; exit 0"), {"pass": True}, id="K-145-exit-0-talks"),
        pytest.param(("sh", "-c", "exit 7"), {"pass": False, "reasons": ["the check exited 7:"]}, id="K-145-exit-7-silent"),
        pytest.param(("sh", "-c", "echo out; echo err >&2; exit 7"), {"pass": False, "reasons": ["the check exited 7: err"]}, id="D52-standard-error"),
        pytest.param(("sh", "-c", "echo out; echo ' ' >&2; exit 7"), {"pass": False, "reasons": ["the check exited 7: out"]}, id="D52-blank-standard-error"),
        pytest.param(("sh", "-c", "kill -9 $$"), {"pass": False, "reasons": ["the check exited 137:"]}, id="D34-death-by-signal"),
        pytest.param(python("import sys; sys.exit('x' * 1600 + 'end')"), {"pass": False, "reasons": ["the check exited 1: " + "x" * 1497 + "end"]}, id="D52-1500-characters"),
        pytest.param(python("print('x' * 200000); print('{\"pass\": false}')"), {"pass": False}, id="K-146-pass-false-with-exit-0"),
        pytest.param(("sh", "-c", 'echo \'{"pass": true, "score": 3}\'; exit 1'), {"pass": False, "reasons": ['the check exited 1: {"pass": true, "score": 3}']}, id="K-145-exit-1-counts"),
        pytest.param(("sh", "-c", 'echo \'{"score": 3}\''), {"pass": True}, id="K-146-without-pass"),
        pytest.param(("sh", "-c", "echo '[1]'"), {"pass": True}, id="K-146-no-object"),
    ],
)  # fmt: skip
def test_the_exit_code_becomes_the_result_line(argv: tuple[str, ...], result: object) -> None:
    code, line = wrapped(*argv)
    assert (code, json.loads(line)) == (0, result)


def test_K_146_a_line_of_its_own_is_passed_on_as_it_is() -> None:  # noqa: N802
    own = '{ "pass":true,"score" : 0.5, "pass": true }'
    assert wrapped(*python(f"print('more'); print({own!r}); print()"))[1] == own


def test_a_check_that_is_not_there_fails_in_words() -> None:
    code, line = wrapped("/nowhere/check")
    assert code == 0
    assert "the check exited 127: " in json.loads(line)["reasons"][0]
