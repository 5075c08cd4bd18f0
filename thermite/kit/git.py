"""Run git on a repository that somebody else may have written.

Every call is an argv list with a closed environment: no user or system configuration, no
hooks, no filters, no prompts, no network, no replaced or grafted objects, and no say for
the current folder or any GIT_* variable. The repository is always named by `--git-dir`,
which also works when another user owns it. Output, time and standard error are bounded.
"""

import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Final, NamedTuple

from thermite.errors import InfrastructureError, UsageError

SETTINGS: Final = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.attributesFile=/dev/null",
    "core.autocrlf=false",
    "core.logAllRefUpdates=false",
    "core.quotePath=true",
    "core.symlinks=true",
    "core.protectHFS=true",
    "core.protectNTFS=true",
    "gc.auto=0",
    "maintenance.auto=false",
    "pack.threads=1",
    "pack.packSizeLimit=0",
    "protocol.allow=never",
    "protocol.file.allow=always",
    "transfer.fsckObjects=true",
    "submodule.recurse=false",
    "fetch.recurseSubmodules=false",
    "safe.bareRepository=all",
)
"""Given to every call with `-c`, which wins over the repository's own configuration."""

ENVIRONMENT: Final = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "LC_ALL": "C",
    "HOME": "/nonexistent",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_SYSTEM": "/dev/null",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_ALLOW_PROTOCOL": "file",
    "GIT_PROTOCOL_FROM_USER": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_GRAFT_FILE": "/dev/null",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "/bin/false",
    "GIT_SSH_COMMAND": "/bin/false",
}
"""The whole environment of a git process of ours."""

MOST_OUTPUT: Final = 64 << 20
"""Most bytes of standard output that are read unless the caller knows better."""
TIMEOUT_S: Final = 600.0
"""Longest that one git process may take: the limit of a fetch (ledger and signing, 3.9)."""
UNFINISHED: Final = ".half-"
QUARANTINE_FOLDER: Final = ".quarantine-"
"""How the names of folders begin that only live as long as one call."""
_OF_ONE_CALL: Final = re.compile(r"\.(half|quarantine)-[a-z0-9_]{8}")  # as tempfile names them
_KEPT: Final = re.compile(r"(kit|project)-.+\.git")
_WRITTEN_FIRST: Final = frozenset({"HEAD", "HEAD.lock", "config", "config.lock", "description"})
"""All that `git init --bare --template=` writes before a repository is one."""
_LINGER_S: Final = 15.0  # Kit manifest, Limits: how long the judge waits for output to close
_STDERR_KEPT: Final = 2000
_CHUNK: Final = 1 << 16


class GitError(InfrastructureError):
    """A call of git failed; a caller who knows whose fault it is says so instead.

    Args:
        code: git's exit code; said: the end of what it wrote to standard error.
    """

    def __init__(self, command: str, code: int, said: str) -> None:
        super().__init__(f"git {command} failed (exit {code}): {' '.join(said.split())}")
        self.code = code
        self.said = said


class Finished(NamedTuple):
    """How a git process went; cut: its output went over the limit, and it was ended."""

    code: int
    stdout: bytes
    stderr: str
    cut: bool


def git_argv(git_dir: str, *args: str, program: str = "git") -> list[str]:
    """Return the whole argv of one git call, for a process of ours or for a stage."""
    settings = [word for setting in SETTINGS for word in ("-c", setting)]
    return [program, f"--git-dir={git_dir}", "--no-pager", *settings, *args]


def git_program() -> str:
    """Return where git is.

    Raises:
        UsageError: it is not installed; whoever set up this machine can mend that.
    """
    found = shutil.which("git") or shutil.which("git", path=ENVIRONMENT["PATH"])
    if found is None:
        raise UsageError("git is not on this machine's PATH: install git 2.39 or newer")
    return found


def run_git(
    repo: Path,
    command: str,
    *args: str,
    stdin: bytes = b"",
    env: Mapping[str, str] | None = None,
    timeout_s: float = TIMEOUT_S,
    most_output: int = MOST_OUTPUT,
    into: IO[bytes] | None = None,
) -> Finished:
    """Run git on a repository and return how it went, whatever its exit code.

    Args:
        repo: a bare repository or a work tree's root; env: variables beside the closed ones;
            most_output: bytes of standard output, one more ends git; into: a file that takes
            standard output instead, from where it stands, without limit.

    Raises:
        GitError: there is no such folder, or it took longer than timeout_s.
        UsageError: git is not installed.
    """
    folder = git_folder(repo)
    if not folder.is_dir():
        raise GitError(command, 128, f"there is no repository at {repo}")
    argv = git_argv(str(folder), command, *args, program=git_program())
    with tempfile.TemporaryFile() as stderr:
        process = subprocess.Popen(
            argv,
            stdin=subprocess.PIPE,
            stdout=into or subprocess.PIPE,
            stderr=stderr,
            env={**ENVIRONMENT, **(env or {})},
            cwd=folder,
            start_new_session=True,
        )
        late = threading.Event()
        timer = threading.Timer(timeout_s, _end_late, (process, late))
        timer.start()
        try:
            stdout, cut = _talk(process, stdin, most_output)
        finally:
            timer.cancel()
            timer.join()  # from here on nobody else ends it, so it may be reaped
            _reap(process, late)
        if late.is_set():
            raise GitError(command, 124, f"it took longer than {timeout_s:g} s")
        return Finished(process.returncode, stdout, _tail(stderr), cut)


def git(
    repo: Path,
    command: str,
    *args: str,
    stdin: bytes = b"",
    env: Mapping[str, str] | None = None,
    timeout_s: float = TIMEOUT_S,
    most_output: int = MOST_OUTPUT,
) -> bytes:
    """Run one git command on a repository and return its standard output; see `run_git`.

    Raises:
        GitError: it exited with another code than 0, printed or took too much.
    """
    done = run_git(
        repo,
        command,
        *args,
        stdin=stdin,
        env=env,
        timeout_s=timeout_s,
        most_output=most_output,
    )
    if done.cut:
        raise GitError(command, done.code, f"it printed more than {most_output} bytes")
    if done.code != 0:
        raise GitError(command, done.code, done.stderr)
    return done.stdout


def git_folder(repo: Path) -> Path:
    """Return the folder that git keeps its objects in: a `.git`, or the bare repository itself."""
    dot_git = repo / ".git"
    if dot_git.is_dir():
        return dot_git.absolute()
    if dot_git.is_file():  # a linked worktree or a submodule
        with dot_git.open("rb") as file:
            line = file.read(8192).decode("utf-8", "surrogateescape").strip()
        if line.startswith("gitdir: "):
            return (repo / line.removeprefix("gitdir: ")).absolute()
    return repo.absolute()


def is_repository(folder: Path) -> bool:
    """Return whether the folder is the root of a git repository, bare or not."""
    inner = git_folder(folder)
    return (inner / "HEAD").is_file() and (
        (inner / "objects").is_dir() or (inner / "commondir").is_file()
    )


def make_repository(path: Path, *, sha256: bool = False) -> None:
    """Make an empty bare repository unless there is one already; without template or hooks.

    It gets its name when it is whole: a process that dies in between leaves none.

    Raises:
        InfrastructureError: something else lies there.
    """
    if is_repository(path):
        return
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    init, *args = init_args(sha256=sha256)
    with tempfile.TemporaryDirectory(prefix=UNFINISHED, dir=path.parent) as folder:
        made = Path(folder) / path.name
        made.mkdir(mode=0o700)
        git(made, init, *args)
        try:
            made.rename(path)
        except OSError as error:
            if not is_repository(path):  # else somebody was quicker
                raise InfrastructureError(
                    f"{path} can't become a repository: {error.strerror}: move it away"
                ) from None


def mend_repositories(folder: Path) -> list[str]:
    """Remove what gits that were killed left among a rig's bare repositories.

    Only what is ours beyond doubt: folders of one call by their names, `kit-*.git` and
    `project-*.git` that hold no more than git writes first, and git's lock files in them.
    Nobody else may use them now: a lock of a living git looks like one of a dead one.

    Returns:
        What could not be looked at or removed, in words.
    """
    problems: list[str] = []
    for entry in list(os.scandir(folder)):
        if not entry.is_dir(follow_symlinks=False):
            continue
        try:
            _mend(Path(entry.path))
        except OSError as error:
            problems.append(f"{entry.path} can't be mended: {error.strerror}")
    return problems


def _mend(found: Path) -> None:
    if _OF_ONE_CALL.fullmatch(found.name):
        shutil.rmtree(found)
    elif _KEPT.fullmatch(found.name):
        if is_repository(found):
            for path in _files(found, but=found / "objects"):
                if path.suffix == ".lock":
                    path.unlink()
        elif all(path.relative_to(found).as_posix() in _WRITTEN_FIRST for path in _files(found)):
            shutil.rmtree(found)


def _files(folder: Path, *, but: Path | None = None) -> Iterator[Path]:
    """Yield everything below a folder that is no folder, following no link.

    but: a folder that is not looked into: a repository may have a million objects.

    Raises:
        OSError: a folder can't be read.
    """

    def refuse(error: OSError) -> None:
        raise error

    for here, folders, names in os.walk(folder, onerror=refuse, followlinks=False):
        yield from (Path(here) / name for name in names)
        yield from (Path(here) / name for name in folders if (Path(here) / name).is_symlink())
        folders[:] = [name for name in folders if Path(here) / name != but]


def init_args(*, sha256: bool) -> Sequence[str]:
    """Return the arguments that make `--git-dir` an empty bare repository."""
    kind = "sha256" if sha256 else "sha1"
    return ("init", "--quiet", "--bare", "--template=", f"--object-format={kind}")


def _talk(process: subprocess.Popen[bytes], given: bytes, most_output: int) -> tuple[bytes, bool]:
    """Feed standard input from a thread while the output is read up to its limit."""
    if process.stdin is None:
        raise RuntimeError("a pipe was asked for")
    feeder = threading.Thread(target=_feed, args=(process.stdin, given), daemon=True)
    feeder.start()
    parts: list[bytes] = []
    if process.stdout is None:
        feeder.join()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        return b"", False
    room = most_output
    while room >= 0 and (part := process.stdout.read(_CHUNK)):
        room -= len(part)
        parts.append(part)
    if room < 0:
        os.killpg(process.pid, signal.SIGKILL)
    process.stdout.close()
    feeder.join()
    return b"".join(parts), room < 0


def _feed(stdin: IO[bytes], given: bytes) -> None:
    try:
        with stdin:
            stdin.write(given)
    except (BrokenPipeError, ValueError):
        return  # git has ended without reading it all; its exit code says why


def _end_late(process: subprocess.Popen[bytes], late: threading.Event) -> None:
    """End the session; nobody has reaped its leader yet, so the id is still its own."""
    late.set()
    os.killpg(process.pid, signal.SIGKILL)


def _reap(process: subprocess.Popen[bytes], late: threading.Event) -> None:
    """Wait for a process that has closed its output, and end it if it lingers."""
    try:
        process.wait(timeout=_LINGER_S)
    except subprocess.TimeoutExpired:
        _end_late(process, late)
        process.wait()


def _tail(stderr: IO[bytes]) -> str:
    stderr.seek(0, os.SEEK_END)
    size = stderr.tell()
    stderr.seek(max(0, size - _STDERR_KEPT))
    raw: bytes = stderr.read()
    return raw.decode("utf-8", "backslashreplace").strip()
