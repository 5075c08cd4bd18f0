"""Trust as text: the lines of a file that say which keys a rig trusts, and their rules.

Source: ledger and signing, 3.11: one root, any number of command keys, one key may be both.
"""

import difflib
import re
from collections.abc import Callable, Sequence
from typing import Any, Final, Literal, cast, get_args

from thermite.command.instant import read_instant
from thermite.command.keyring import MOST_KEYS
from thermite.command.public_key import PublicKey
from thermite.errors import UsageError
from thermite.schema.command import CommandType, TrustedKey

MOST_LABEL: Final = 64
"""Most characters of a label, as for a name."""
MOST_TRUST_BYTES: Final = 64 * 1024
"""Most bytes of a trust file: 64 keys with all their rights take less than half of it."""

_OPTIONS: Final = ("role", "types", "from", "until")
_OPTION: Final = re.compile(r"[A-Za-z_]+=")
_ROLES: Final = ("root", "command")
_TYPES: Final[tuple[str, ...]] = get_args(CommandType)

Role = Literal["root", "command"]


def read_trust(raw: bytes) -> list[TrustedKey]:
    """Return the keys of a trust file: public lines, each with its rights.

    A line is `thermite-ed25519 <base64> <label>` and may go on with `role=root,command`,
    `types=…`, `from=…`, `until=…`; `#` begins a comment line. A file of one plain line makes
    that key root and command; in a longer one a plain line is a command key.

    Raises:
        UsageError: names each line that can't be read, or the rule that is broken.
    """
    if len(raw) > MOST_TRUST_BYTES:
        raise UsageError(f"a trust file has at most {MOST_TRUST_BYTES} bytes, not {len(raw)}")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"the trust file is not UTF-8 at byte {error.start}") from None
    lines = [(at, line.strip()) for at, line in enumerate(text.split("\n"), 1)]
    wanted = [(at, line) for at, line in lines if line and not line.startswith("#")]
    if wanted and wanted[0][1].startswith("-----BEGIN"):
        PublicKey.from_line(wanted[0][1])  # refuses, and says which kind of file it is
    keys = [_read_line(line, at, alone=len(wanted) == 1) for at, line in wanted]
    problems = trust_problems(keys)
    if problems:
        raise UsageError("; ".join(problems))
    return keys


def trust_problems(keys: Sequence[TrustedKey]) -> list[str]:
    """Return every rule that a trust breaks, in words; an empty list is a good trust."""
    problems = [] if keys else ["no key is listed: a rig needs one root key"]
    if len(keys) > MOST_KEYS:
        problems.append(f"{len(keys)} keys are listed, and a trust has at most {MOST_KEYS}")
    roots = sum("root" in key.roles for key in keys)
    if keys and roots != 1:
        problems.append(
            f"{roots} keys have the role root, and exactly one has it: write role=root behind its"
            " line alone"
        )
    seen: set[str] = set()
    for key in keys:
        problems.extend(f"key {key.id[:40]}: {text}" for text in _key_problems(key))
        if key.public in seen:
            problems.append(f"key {key.id[:40]} is listed twice")
        seen.add(key.public)
    return problems


def _key_problems(key: TrustedKey) -> list[str]:
    problems = []
    try:
        public = PublicKey.from_base64(key.public)
        if public.id != key.id:
            problems.append(f"its public key is that of {public.id}")
    except UsageError as error:
        problems.append(str(error))
    if len(key.label) > MOST_LABEL or not key.label.isprintable():
        problems.append(f"its label is longer than {MOST_LABEL} characters or can't be printed")
    if not key.roles:
        problems.append("it has no role: give it root, command or both")
    problems.extend(
        f"{kind[:40]!a} is no command{_near(kind, _TYPES)}"
        for kind in key.types or []
        if kind not in _TYPES
    )
    for name, moment in (("from", key.from_), ("until", key.until)):
        if moment is not None:
            problems.extend(_time_problem(name, moment))
    return problems


def _time_problem(name: str, text: str) -> list[str]:
    try:
        read_instant(text)
    except ValueError as error:
        return [f"{name}: {error}"]
    return []


def _read_line(line: str, at: int, *, alone: bool) -> TrustedKey:
    words = line.split()
    cut = next((n for n, word in enumerate(words) if _OPTION.match(word) and n > 1), len(words))
    try:
        public, label = PublicKey.from_line(" ".join(words[:cut]))
        rights = _read_options(words[cut:])
    except UsageError as error:
        raise UsageError(f"line {at}: {error}") from None
    plain: list[Role] = ["root", "command"] if alone else ["command"]
    return TrustedKey(
        id=public.id,
        public=public.base64,
        label=label,
        roles=cast("list[Role]", rights.get("role", plain)),
        types=rights.get("types"),
        from_=rights.get("from"),
        until=rights.get("until"),
    )


def _read_options(words: list[str]) -> dict[str, Any]:
    rights: dict[str, Any] = {}
    read: dict[str, Callable[[str], object]] = {
        "role": _roles,
        "types": lambda text: text.split(","),
        "from": str,
        "until": str,
    }
    for word in words:
        name, _, value = word.partition("=")
        if name not in read:
            raise UsageError(f"{name[:40]!a} is no option of a key{_near(name, _OPTIONS)}")
        if name in rights:
            raise UsageError(f"{name} is given twice")
        rights[name] = read[name](value)
    return rights


def _roles(text: str) -> list[str]:
    roles = text.split(",")
    for role in roles:
        if role not in _ROLES:
            raise UsageError(f"{role[:40]!a} is no role{_near(role, _ROLES)}")
    return list(dict.fromkeys(roles))


def _near(word: str, names: Sequence[str]) -> str:
    near = difflib.get_close_matches(word, names, n=1)
    return f": did you mean {near[0]}?" if near else f": there are {', '.join(names)}"
