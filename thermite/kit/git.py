"""Git as a child process: argv only, a closed environment, nobody's configuration.

Neither the operator's configuration, hooks and filters nor GIT_* variables nor the current
folder take part; a repository of another owner works because exactly its path is named safe
for exactly this call. Candidate text is never passed as an option or a URL.
Source: known faults, section 6; ledger and signing, 1.2.
"""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from thermite.errors import ThermiteError

TIMEOUT_S: Final = 600
"""The longest that one call of git may take (ledger and signing, 3.9: 10 minutes)."""
_OPTIONS: Final = (
    *("-c", "core.hooksPath=/dev/null"),
    *("-c", "core.fsmonitor=false"),
    *("-c", "core.autocrlf=false"),
    *("-c", "core.quotePath=true"),
    *("-c", "gc.auto=0"),
    *("-c", "maintenance.auto=false"),
    *("-c", "protocol.allow=never"),
    *("-c", "protocol.file.allow=always"),
    *("-c", "fetch.recurseSubmodules=false"),
)


class GitError(ThermiteError):
    """A call of git failed; whose fault it is, the caller knows.

    Args:
        code: git's exit code; said: what it wrote to stderr.
    """

    def __init__(self, command: str, code: int, said: str) -> None:
        super().__init__(f"git {command} failed (exit {code}): {said}")
        self.code = code
        self.said = said


def environment() -> dict[str, str]:
    """Return the closed environment in which git runs."""
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": "/nonexistent",
        "LC_ALL": "C",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CEILING_DIRECTORIES": "/",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_NO_REPLACE_OBJECTS": "1",
    }


def git(
    repo: Path,
    command: str,
    *args: str,
    stdin: bytes = b"",
    env: Mapping[str, str] | None = None,
    timeout_s: float = TIMEOUT_S,
) -> bytes:
    """Run one git command on a repository and return its standard output.

    Args:
        repo: a bare repository, or a work tree; env: variables beside the closed environment.

    Raises:
        GitError: it exited with another code than 0, or took longer than timeout_s.
    """
    argv = [
        "git",
        "-C",
        str(repo),
        *_OPTIONS,
        "-c",
        f"safe.directory={repo.resolve()}",
        command,
        *args,
    ]
    try:
        done = subprocess.run(
            argv,
            input=stdin,
            env={**environment(), **(env or {})},
            capture_output=True,
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise GitError(command, 124, f"it took longer than {timeout_s} s") from error
    except FileNotFoundError as error:
        raise GitError(command, 127, "git is not installed, or not on PATH") from error
    if done.returncode != 0:
        raise GitError(command, done.returncode, _short(done.stderr))
    return done.stdout


def _short(said: bytes) -> str:
    """Return the last 2,000 characters of what git said, on one line."""
    return " ".join(said.decode(errors="replace").split())[-2000:]
