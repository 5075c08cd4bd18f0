"""The accounts that `thermite rig init` makes and `thermite rig remove` takes away again.

A rig needs none: its spawner leases numbers. Accounts give these numbers names that a person
sees in `ps` and `ls`, and keep everybody else from them. Each is a user and a group of one name
and number, without a password, home or shell, and marked as a rig's in its comment: a name that
is there without the mark is somebody's, and is never touched.

The four files are changed one after the other, each by one rename, under the lock that the
system's own tools take. `passwd`, which has the marks, is the first to be written and the last
to be undone, so that whatever a kill leaves is known as a rig's and is finished or undone by
the next call. Source: isolation, 4.1 (Uids are leased); passwd(5), group(5), shadow(5),
gshadow(5), lckpwdf(3).
"""

import contextlib
import fcntl
import os
import re
import stat
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import psutil

from thermite.errors import UsageError
from thermite.rig.start import numbers_of
from thermite.schema.rig_settings import Slots

MARK: Final = "thermite rig"
HOME: Final = "/nonexistent"
SHELL: Final = "/usr/sbin/nologin"
DROP_GROUP: Final = "thermite-drop"
"""Who is in it may drop orders into a rig's inbox (the system page, A rig's folder)."""
ETC: Final = Path("/etc")
LEASES: Final = Path("/run/thermite/uids")
"""One file for each number that a rig has leased, locked while it runs (isolation, 4.1)."""
_RANGE: Final = (58000, 58999)
"""THERMITE_UID_RANGE by default (isolation, 4.1)."""
_WHOLE_RIG: Final = ("thermite", "supervisor", "reaper", "check", "import", DROP_GROUP)
OWNERS: Final = ("thermite", "supervisor")
"""Who owns a rig's folder: his number must never become a stage's (thermite.spawner.uids)."""
_MOST_BYTES: Final = 64 << 20
_NEW: Final = ".thermite-new"
_SECRET: Final = {"shadow": "{name}:!:::::::\n", "gshadow": "{name}:!::\n"}


def uid_range() -> tuple[int, int]:
    """Return first and last of the numbers that this machine's rigs may have.

    Raises:
        UsageError: THERMITE_UID_RANGE is not two numbers from 1 on.
    """
    match numbers_of("THERMITE_UID_RANGE", "-") or _RANGE:
        case [low, high] if 0 < low <= high:
            return low, high
    raise UsageError("THERMITE_UID_RANGE must be two numbers from 1 on, as 58000-58999")


def numbers_in_use(leases: Path = LEASES) -> set[int]:
    """Return the numbers that some process has or some running rig has leased."""
    files = [path for path in leases.iterdir() if path.name.isdigit()] if leases.is_dir() else []
    return _alive() | {int(path.name) for path in files if _is_leased(path)}


def in_use(etc: Path = ETC, leases: Path = LEASES) -> list[str]:
    """Return the accounts of a rig that a running rig has leased, or that have a process."""
    alive = _alive()
    return [
        name for name, uid in ours(etc).items() if uid in alive or _is_leased(leases / str(uid))
    ]


def _alive() -> set[int]:
    ids = [one.info["uids"] for one in psutil.process_iter(["uids"])]
    return {number for one in ids if one is not None for number in one}


def _is_leased(path: Path) -> bool:
    """Return whether somebody holds the lock of a lease."""
    try:
        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False


def account_names(slots: Slots) -> list[str]:
    """Return the names of a rig's users: the documents' words for its processes and slots."""
    kinds = {"builder": slots.builders, "run": slots.runs, "gateway": slots.gateways}
    several = [name if i == 0 else f"{name}-{i}" for name, n in kinds.items() for i in range(n)]
    return [*_WHOLE_RIG, *several, *(f"worker-{i}" for i in range(slots.workers))]


def ours(etc: Path = ETC) -> dict[str, int]:
    """Return name and number of the accounts that are marked as a rig's."""
    return {row[0]: int(row[2]) for row in _table(etc / "passwd").values() if _is_ours(row)}


def make_accounts(
    names: Sequence[str], numbers: tuple[int, int], avoid: Collection[int], etc: Path = ETC
) -> list[str]:
    """Make the accounts that are missing, finish those half made, and return whom was added.

    Args:
        names: the accounts that shall be there afterwards.
        numbers: first and last of the numbers that they may get.
        avoid: numbers that are not to be had, since a process has them.

    Raises:
        UsageError: a name is somebody else's, or no number is free; nothing was changed.
        OSError: a file can't be read or written.
    """
    with _locked(etc):
        have, users, groups = ours(etc), _table(etc / "passwd"), _table(etc / "group")
        _refuse_others([name for name in names if name not in have], etc)
        missing = [name for name in names if name not in have]
        given = _given(missing, numbers, {*avoid, *_numbers(users), *_numbers(groups)})
        lines = [f"{name}:x:{n}:{n}:{MARK}:{HOME}:{SHELL}\n" for name, n in given.items()]
        _append(etc / "passwd", lines)
        have |= given
        _append(
            etc / "group", [f"{name}:x:{have[name]}:\n" for name in names if name not in groups]
        )
        for file, form in _SECRET.items():
            if (etc / file).exists():
                there = _table(etc / file)
                _append(etc / file, [form.format(name=name) for name in names if name not in there])
        return missing


def remove_accounts(etc: Path = ETC) -> list[str]:
    """Remove every account that is marked as a rig's, with its group; return their names.

    Raises:
        OSError: a file can't be read or written.
    """
    with _locked(etc):
        have = ours(etc)
        if not have:
            return []
        groups = {
            name for name, row in _table(etc / "group").items() if row[2:3] == [str(have.get(name))]
        }
        for file, names in (
            ("gshadow", groups),
            ("shadow", have.keys()),
            ("group", groups),
            ("passwd", have.keys()),
        ):
            _drop(etc / file, names)
        return list(have)


def _is_ours(row: Sequence[str]) -> bool:
    """Return whether a line has the mark; nobody can give himself this home and shell."""
    return row[4:] == [MARK, HOME, SHELL] and row[2].isdigit() and row[2] == row[3]


def _refuse_others(names: Sequence[str], etc: Path) -> None:
    """Refuse names that somebody has who is not a rig's, in whichever file."""
    tables = {
        path: _table(path)
        for path in (etc / file for file in ("passwd", "group", *_SECRET))
        if path.exists()
    }
    taken = [
        f"{name} in {path}" for path, there in tables.items() for name in names if name in there
    ]
    if taken:
        raise UsageError(
            f"not a rig's: {', '.join(taken)}; nothing was made: rename what is there, or serve"
            " without accounts, by numbers from THERMITE_UID_RANGE"
        )


def _given(
    names: Sequence[str], numbers: tuple[int, int], taken: Collection[int]
) -> dict[str, int]:
    """Return a number for each name: the lowest of the part that its kind has.

    Those who own a rig's folder get the highest: useradd gives the next person the number after
    the highest that is taken, and that must not be one that a rig has leased or will lease.
    """
    low, high = numbers
    given: dict[str, int] = {}
    for is_owner in (False, True):
        part = _part(range(low, high + 1), is_owner=is_owner)[:: -1 if is_owner else 1]
        free = (n for n in part if n not in taken)
        given |= zip([name for name in names if (name in OWNERS) == is_owner], free, strict=False)
    if len(given) < len(names):
        raise UsageError(
            f"only {len(given)} of {len(names)} numbers from {low} to {high} are free: widen"
            " THERMITE_UID_RANGE"
        )
    return {name: given[name] for name in names}


def _part(numbers: range, *, is_owner: bool) -> range:
    """Return the numbers for who owns a rig's folder, the last quarter, or those for the others."""
    owners = max(len(OWNERS), len(numbers) // 4)
    return numbers[-owners:] if is_owner else numbers[:-owners]


def _table(path: Path) -> dict[str, list[str]]:
    """Return a file's lines by their first field; the first of two counts, as in the system."""
    table: dict[str, list[str]] = {}
    for line in _lines(path):
        row = line.rstrip("\n").split(":")
        table.setdefault(row[0], row)
    return table


def _numbers(table: Mapping[str, Sequence[str]]) -> set[int]:
    return {int(row[2]) for row in table.values() if len(row) > 2 and row[2].isdigit()}  # noqa: PLR2004


def _lines(path: Path) -> list[str]:
    """Return a file's lines as they are, whatever bytes they have."""
    with path.open("rb") as file:
        raw = file.read(_MOST_BYTES + 1)
    if len(raw) > _MOST_BYTES:
        raise UsageError(f"{path} has more than {_MOST_BYTES} bytes, which is no list of accounts")
    # Nothing but a newline ends a line here, as splitlines would not have it.
    return re.findall("[^\n]*\n|[^\n]+", raw.decode("utf-8", "surrogateescape"))


def _append(path: Path, lines: Sequence[str]) -> None:
    if lines:
        there = _lines(path)
        end = "" if not there or there[-1].endswith("\n") else "\n"
        _replace(path, [*there, end, *lines])


def _drop(path: Path, names: Collection[str]) -> None:
    if path.exists():
        there = _lines(path)
        kept = [line for line in there if line.rstrip("\n").split(":")[0] not in names]
        if kept != there:
            _replace(path, kept)


def _replace(path: Path, lines: Sequence[str]) -> None:
    """Put a file's next content in its place, whole, with the owner and mode that it has."""
    new = path.with_name(path.name + _NEW)
    new.unlink(missing_ok=True)
    old = path.stat()
    fd = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(fd, "wb") as file:
        file.write("".join(lines).encode("utf-8", "surrogateescape"))
        os.fchown(fd, old.st_uid, old.st_gid)
        os.fchmod(fd, stat.S_IMODE(old.st_mode))
        file.flush()
        os.fsync(fd)
    new.rename(path)
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


@contextlib.contextmanager
def _locked(etc: Path) -> Iterator[None]:
    """Hold the lock of the system's own tools, and clear what a killed call left."""
    fd = os.open(etc / ".pwd.lock", os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        try:
            fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageError(
                f"{etc}/.pwd.lock is held: somebody changes accounts now; try again"
            ) from None
        for file in ("passwd", "group", *_SECRET):
            (etc / f"{file}{_NEW}").unlink(missing_ok=True)
        yield
    finally:
        os.close(fd)
