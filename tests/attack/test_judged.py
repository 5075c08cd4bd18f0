"""Attacks that take a whole judge: hostile trees, hostile outputs before a kit's own check.

A real kit, project, compiler and spawner at every level that the machine offers; after each
attack the next honest candidate is judged honestly on the same rig.
"""

import contextlib
import hashlib
import json
import os
import pickle
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from tests.attack.candidates import OWN_PIDS
from tests.attack.leavings import owned_in_shared_folders
from tests.judge.job.simulated_desk import contract
from tests.judge.real.workshop import FAST, HEAD, Workshop, doing, furnish
from tests.levels import LEVELS, OWN_USER, Rigs
from tests.spawner.conftest import live
from thermite.cli.judge import lines
from thermite.kit.export import tree_of
from thermite.kit.folder import commit_of_folder
from thermite.rig import doctor
from thermite.schema.event import Run, Verdict
from thermite.schema.ids import CommitId
from thermite.schema.job import Revision
from thermite.schema.stage import LevelName


@contextlib.contextmanager
def workshop(rigs: Rigs, level: LevelName, folder: Path) -> Iterator[Workshop]:
    """Lend a workshop on a level's rig; at its end nothing is left and an honest job is honest."""
    lent = furnish(folder, rigs.at(level))
    yield lent
    for run in lent.of(Run):
        assert run.isolation.proof.survivors == 0
        if level in OWN_USER:
            assert live(run.isolation.uid) == 0
            assert owned_in_shared_folders(run.isolation.uid) == []
    (folder / "kit/check.py").write_text(HONEST)
    assert alone(lent, FAST).verdict == "valid"


def alone(lent: Workshop, candidate: str | Revision) -> Verdict:
    """Judge a candidate without a champion: is it valid at all?"""
    asked = contract(objective=None, cells=["small"], held_out_cells=[])
    return lent.judged(candidate, kind="single", champion=None, contract=asked)


def committed(lent: Workshop, tree: Path) -> Revision:
    repo = lent.folder / "project.git"
    commit = commit_of_folder(repo, tree)
    return Revision(commit=commit, tree=tree_of(repo, commit))


HONEST = """
import json, pathlib, sys
n = json.load(open(sys.argv[1]))["n"]
found = pathlib.Path(sys.argv[2], "sum").read_text()
print(json.dumps({"pass": found == str(n * (n - 1) // 2), "reasons": []}))
"""

UNPICKLES = """
import json, pickle, sys
tried = None
pickle.load(open(sys.argv[2] + "/x", "rb"))
print(json.dumps({"pass": False, "reasons": [json.dumps(tried)]}))
"""
PAYLOAD = """
import errno, os, socket, sys
def over(kind, address):
    return lambda: socket.socket(kind).connect(address)
acts = {{
    "files ledger": lambda: open({ledger!r}, "r+b"),
    "files key": lambda: open({key!r}, "rb"),
    "signals harness": lambda: os.kill({harness}, 0),
    "signals spawner": lambda: os.kill(os.getppid(), 0),
    "network tcp": over(socket.AF_INET, ("127.0.0.1", {port})),
    "abstract_sockets harness": over(socket.AF_UNIX, {name!r}),
    "kit itself": lambda: open(sys.argv[0], "w"),
}}
tried = {{}}
for what, act in acts.items():
    try:
        act()
    except OSError as error:
        tried[what] = errno.errorcode[error.errno]
    else:
        tried[what] = "done"
sys.modules["__main__"].tried = tried
"""
REFUSED = {"EACCES", "EPERM", "ESRCH", "EAFNOSUPPORT", "EROFS", "ECONNREFUSED", "ENOENT"}


class Bomb:
    def __init__(self, code: str) -> None:
        self.code = code

    def __reduce__(self) -> tuple[object, ...]:
        return exec, (self.code,)


def leaving(raw: bytes) -> str:
    """A candidate that is right and leaves these bytes as out/x."""
    numbers = ",".join(map(str, raw))
    write = f'static const unsigned char b[] = {{{numbers}}}; FILE *f = fopen("out/x", "w");'
    return HEAD + FAST.replace(
        "volatile", f"{write} fwrite(b, 1, sizeof b, f); fclose(f);\nvolatile"
    )


@pytest.mark.parametrize("level", LEVELS)
def test_3_a_check_that_unpickles_an_output_hands_out_nothing(
    rigs: Rigs, home: Path, level: LevelName
) -> None:
    ledger, key = home / "ledger.db", home / "rig.key"
    for file in (ledger, key):
        file.write_text("the rig's own")
        file.chmod(0o600)
    with (
        workshop(rigs, level, home) as lent,
        socket.create_server(("127.0.0.1", 0)) as tcp,
        socket.socket(socket.AF_UNIX) as abstract,
    ):
        abstract.bind(f"\0thermite-attack-{os.getpid()}-{level}")
        abstract.listen()
        code = PAYLOAD.format(
            ledger=str(ledger),
            key=str(key),
            harness=os.getpid(),
            port=tcp.getsockname()[1],
            name=abstract.getsockname().decode(),
        )
        (lent.kit / "check.py").write_text(UNPICKLES)
        verdict = alone(lent, leaving(pickle.dumps(Bomb(code))))
        assert verdict.verdict == "invalid", verdict.reasons
        tried = json.loads(verdict.reasons[0])
        got = {what: said for what, said in tried.items() if said not in REFUSED}
        gaps = set(lent.rig.isolation.gaps)
        if level in OWN_PIDS:
            got.pop("signals spawner")  # 0, itself: it sees no parent
        assert {what for what in got if what.partition(" ")[0] not in gaps} == set(), tried
        assert len(tried) == 7
        assert ledger.read_text() == "the rig's own"
        assert (lent.kit / "check.py").read_text() == UNPICKLES


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(
    ("link", "said"),
    [
        pytest.param(".kit", ".kit is the kit's place", id="6-kit"),
        pytest.param("out", "out is a link that leaves the tree", id="6-parent-of-an-output"),
    ],
)
@pytest.mark.parametrize("target", ["../x", "absolute"])
def test_a_committed_link_leads_the_judge_nowhere(
    rigs: Rigs, home: Path, link: str, said: str, target: str, level: LevelName
) -> None:
    spill = home / "spill"
    spill.mkdir()
    spill.chmod(0o777)
    with workshop(rigs, level, home) as lent:
        tree = home / "tree"
        tree.mkdir()
        (tree / "sum.c").write_text(FAST)
        (tree / link).symlink_to(spill if target == "absolute" else target)
        verdict = alone(lent, committed(lent, tree))
        assert (verdict.verdict, verdict.reasons) == ("invalid", [f"build: source refused: {said}"])
        assert list(spill.iterdir()) == []


ATTRIBUTES = """
hidden.txt export-ignore
subst.txt export-subst
ident.txt ident
eol.txt text eol=crlf
filtered.txt filter=evil
encoded.txt working-tree-encoding=UTF-16
"""
HASHES = "\nfind . -type f ! -path './.kit/*' ! -path './out/*' -exec sha256sum {} + > out/hashes\n"


@pytest.mark.parametrize("level", LEVELS)
def test_21_a_build_sees_the_bytes_that_git_stores_whatever_the_attributes_say(
    rigs: Rigs, home: Path, level: LevelName
) -> None:
    files = {
        "sum.c": FAST,
        ".gitattributes": ATTRIBUTES,
        "hidden.txt": "seen\n",
        "subst.txt": "$Format:%H$\n",
        "ident.txt": "$Id$\n",
        "eol.txt": "a\nb\n",
        "filtered.txt": "raw\n",
        "encoded.txt": "raw\n",
    }
    with workshop(rigs, level, home) as lent:
        manifest = json.loads((lent.kit / "kit.json").read_text())
        manifest["build"]["outputs"].append("out/hashes")
        (lent.kit / "kit.json").write_text(json.dumps(manifest))
        with (lent.kit / "bench/build.sh").open("a") as script:
            script.write(HASHES)
        candidate = lent.commit(files)
        smudge = ["config", "filter.evil.smudge", f"touch {home}/smudged; tr a-z A-Z"]
        git(home / "project.git", *smudge)
        assert alone(lent, candidate).verdict == "valid"
        (found,) = (home / "store").glob("*/**/hashes")
        wanted = {f"./{n}": hashlib.sha256(text.encode()).hexdigest() for n, text in files.items()}
        seen = dict(line.split()[::-1] for line in found.read_text().splitlines())
        assert seen == wanted
        assert not (home / "smudged").exists()


def git(repo: Path, *args: str, stdin: str = "") -> str:
    argv = ["git", f"--git-dir={repo}", *args]
    return subprocess.run(argv, input=stdin, capture_output=True, text=True, check=True).stdout


def made_tree(repo: Path, path: str, mode: str, target: str) -> str:
    """Make the tree of one path, whatever git itself would say to its names."""
    *folders, name = path.split("/")
    tree = git(repo, "mktree", "-z", "--missing", stdin=f"{mode} {target}\t{name}\0").strip()
    for folder in reversed(folders):
        tree = git(repo, "mktree", "-z", stdin=f"040000 tree {tree}\t{folder}\0").strip()
    return tree


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(
    ("path", "kind", "said"),
    [
        pytest.param("lib", "gitlink", "lib is another git repository", id="22-gitlink"),
        pytest.param(
            ".git/hooks/post-checkout",
            "hook",
            ".git has a part named .git; .git/hooks has a part named .git;"
            " .git/hooks/post-checkout has a part named .git",
            id="22-hook",
        ),
        pytest.param("a\r", "file", "a\\r has a line break in its name", id="22-carriage-return"),
        pytest.param("a\nb", "file", "a\\nb has a line break in its name", id="22-line-break"),
    ],
)
def test_a_tree_that_git_itself_could_be_led_by_is_refused_by_name(
    rigs: Rigs, home: Path, path: str, kind: str, said: str, level: LevelName
) -> None:
    with workshop(rigs, level, home) as lent:
        repo = home / "project.git"
        lent.commit({"sum.c": FAST})
        if kind == "gitlink":
            tree = made_tree(repo, path, "160000", f"commit {'1' * 40}")
        else:
            text = f"#!/bin/sh\ntouch {home}/hooked\n"
            blob = git(repo, "hash-object", "-w", "--stdin", stdin=text).strip()
            tree = made_tree(repo, path, "100755", f"blob {blob}")
        who = ["-c", "user.name=x", "-c", "user.email=x@localhost"]
        commit = CommitId(git(repo, *who, "commit-tree", "-m", "x", tree).strip())
        verdict = alone(lent, Revision(commit=commit, tree=tree_of(repo, commit)))
        assert (verdict.verdict, verdict.reasons) == ("invalid", [f"build: source refused: {said}"])
        assert not (home / "hooked").exists()


@pytest.mark.parametrize("level", LEVELS)
def test_29_a_hostile_name_reaches_ledger_and_terminal_as_plain_text(
    rigs: Rigs, home: Path, level: LevelName
) -> None:
    with workshop(rigs, level, home) as lent:
        make = 'if (mkfifo("out/a\\377\\033[31m\\n\\xe2\\x80\\xae", 0600)) exit(9);'
        verdict = alone(lent, "#include <sys/stat.h>\n" + doing(make))
        assert verdict.verdict == "invalid"
        (reason,) = verdict.reasons
        assert reason == (
            "outputs refused: out/a\\xff\\x1b[31m\\x0a\\xe2\\x80\\xae is a named pipe"
        )
        (run,) = lent.of(Run)
        for fact in (verdict, run):
            assert msgspec.json.decode(msgspec.json.encode(fact), type=type(fact)) == fact
        document = {
            "verdict": verdict.verdict,
            "reasons": verdict.reasons,
            "gain": None,
            "interval": None,
            "cells": {},
            "marks": [],
            "isolation": {"said": ""},
            "ledger": None,
        }
        assert all(line.isprintable() for line in lines(document))


@pytest.mark.parametrize("tool", ["crontab", "at", "systemd-run"])
def test_33_the_doctor_names_what_could_run_something_later(
    tool: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    warning = f"{tool} is installed: what a stage leaves with it would run later"
    assert warning not in doctor._notes()
    (tmp_path / tool).write_text("#!/bin/sh\n")
    (tmp_path / tool).chmod(0o755)
    assert warning in doctor._notes()
