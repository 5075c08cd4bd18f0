"""Trust files: who may do what, one line a key; a misspelt right is never a larger one."""

import pytest

from tests.command.orders import ALICE, BOB, trusted
from thermite.command.keyring import SigningKey
from thermite.command.trust import read_trust, trust_problems
from thermite.errors import UsageError
from thermite.schema.command import TrustedKey

LINE = ALICE.public.line("Anna's laptop")
OTHER = BOB.public.line("dashboard")


def said_of(text: str) -> str:
    with pytest.raises(UsageError) as caught:
        read_trust(text.encode())
    return str(caught.value)


@pytest.mark.parametrize("text", [LINE, LINE + "\r\n", f"# mine\n\n{LINE}\n", "\ufeff" + LINE])
def test_a_single_plain_line_is_root_and_command(text: str) -> None:
    key = TrustedKey(
        id=ALICE.public.id,
        public=ALICE.public.base64,
        label="Anna's laptop",
        roles=["root", "command"],
    )
    assert read_trust(text.encode()) == [key]


def test_rights_are_read_from_the_line() -> None:
    text = (
        f"{LINE} role=root\n{OTHER} role=command types=stop_campaign,steer_campaign"
        " from=2026-01-01T00:00:00Z until=2027-01-01T00:00:00Z\n"
    )
    root, second = read_trust(text.encode())
    assert root.roles == ["root"]
    assert second == TrustedKey(
        id=BOB.public.id,
        public=BOB.public.base64,
        label="dashboard",
        roles=["command"],
        types=["stop_campaign", "steer_campaign"],
        from_="2026-01-01T00:00:00Z",
        until="2027-01-01T00:00:00Z",
    )


def test_in_a_longer_file_a_plain_line_is_a_command_key() -> None:
    keys = read_trust(f"{LINE} role=root,command\n{OTHER}\n".encode())
    assert [key.roles for key in keys] == [["root", "command"], ["command"]]


def test_an_openssh_line_is_a_key_too() -> None:
    line = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAINdamAGCsQq31Uv+08lkBzoO4XLz2qYjJa8CGmj3B1Ea me"
    assert read_trust(line.encode())[0].id == "21fe31dfa154a261626bf854046fd227"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param("", "no key is listed", id="empty"),
        pytest.param("# nothing\n", "no key is listed", id="comments only"),
        pytest.param(f"{LINE}\n{OTHER}\n", "0 keys have the role root", id="no root"),
        pytest.param(f"{LINE} role=root\n{OTHER} role=root\n", "2 keys have", id="two roots"),
        pytest.param(f"{LINE} role=root\n{LINE}\n", "listed twice", id="twice"),
        pytest.param(f"{LINE} tpyes=stop_campaign", "did you mean types?", id="misspelt option"),
        pytest.param(f"{LINE} role=boss", "'boss' is no role", id="no role"),
        pytest.param(f"{LINE} role=", "'' is no role", id="empty role"),
        pytest.param(f"{LINE} types=stop_campain", "did you mean stop_campaign?", id="no command"),
        pytest.param(f"{LINE} role=root role=command", "given twice", id="option twice"),
        pytest.param(f"{LINE} role=root more words", "'more' is no option", id="label behind"),
        pytest.param(f"{LINE} until=tomorrow", "until: 'tomorrow' is not a time", id="no time"),
        pytest.param(f"{LINE} until=2026-01-01", "is not a time", id="a date"),
        pytest.param("# x\nssh-rsa AAAA me", "line 2: this is a key of the kind", id="RSA"),
        pytest.param("thermite-ed25519 AQ" + "A" * 41 + "= x", "low order", id="low order"),
        pytest.param(ALICE.public.line("x" * 65), "longer than 64", id="long label"),
        pytest.param(ALICE.public.line("a\x1b[31m"), "can't be printed", id="escape sequence"),
        pytest.param(ALICE.pem(None).decode(), "a private key", id="private key"),
        pytest.param("x" * 70_000, "at most 65536", id="huge"),
    ],
)
def test_a_file_that_would_trust_something_else_is_refused(text: str, said: str) -> None:
    message = said_of(text)
    assert said in message
    assert "MC4CAQ" not in message  # how a private key's base64 begins


def test_bytes_that_are_no_text_are_refused() -> None:
    with pytest.raises(UsageError, match="not UTF-8"):
        read_trust(b"\xff\xfe")


def test_a_trust_in_a_command_obeys_the_same_rules() -> None:
    assert trust_problems([trusted(ALICE)]) == []
    wrong = TrustedKey(id="ff" * 16, public=ALICE.public.base64, label="", roles=[])
    problems = "; ".join(trust_problems([wrong]))
    assert "its public key is that of" in problems
    assert "no role" in problems
    assert "0 keys have the role root" in problems


def test_a_trust_has_at_most_64_keys() -> None:
    keys = [trusted(SigningKey.from_raw(bytes([n + 3] * 32)), roles=["command"]) for n in range(64)]
    assert trust_problems([trusted(ALICE), *keys]) == [
        "65 keys are listed, and a trust has at most 64"
    ]
