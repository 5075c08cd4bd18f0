"""Orders about trust: what a rig's card shows that it would refuse is not sent."""

import msgspec
import pytest

from tests.cli.operator_desk import Desk, known_desk
from thermite.command.keyring import PublicKey
from thermite.command.trust import read_trust
from thermite.schema.command import Trust


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    return known_desk(tmp_path_factory.mktemp("trust") / "desk")


@pytest.fixture(scope="module")
def trusting(desk: Desk) -> dict[str, str]:
    """The ids of the keys of a rig that says whom it trusts."""
    ids: dict[str, str] = {}
    lines: list[str] = []
    for name, role in (("root", "root"), ("mine", "command"), ("lost", "command"), ("new", "")):
        told = desk.told("keygen", "--no-passphrase", f"keys/{name}.key", "--label", name)
        ids[name] = PublicKey.from_line(told["line"])[0].id
        if role:
            lines.append(f"{told['line']} role={role}\n")
    trust = read_trust("".join(lines).encode())
    trust[2] = msgspec.structs.replace(trust[2], revoked_since="2026-01-31T12:00:00Z")
    desk.rig.write_card(trust=Trust(version=4, keys=trust))
    (desk.folder / "next.txt").write_text("".join(lines), encoding="utf-8")
    return ids


def test_whom_a_rig_trusts_is_listed(desk: Desk, trusting: dict[str, str]) -> None:
    told = desk.told("key", "list", "--rig", "bench")
    assert (told["version"], [key["id"] for key in told["keys"]]) == (
        4,
        [trusting[name] for name in ("root", "mine", "lost")],
    )
    lines = desk.run("key", "list", "--rig", "bench").stdout.splitlines()
    assert lines[0] == "trust version 4"
    assert lines[3] == f"{trusting['lost']}  command  lost  revoked since 2026-01-31T12:00:00Z"


FUTURE = "2999-01-31T12:00:00Z"


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        pytest.param("revoke mine --since {FUTURE} --key root", 2, "still to come", id="future"),
        pytest.param("revoke new --key root", 3, "this rig trusts no key", id="unknown key"),
        pytest.param("revoke root --key root", 2, "key rotate", id="the root"),
        pytest.param("revoke mine --key mine", 2, "takes the role root", id="no root signs"),
        pytest.param("revoke mine --key lost", 2, "is revoked since", id="a revoked key signs"),
        pytest.param("revoke mine --key new", 2, "does not trust key", id="a stranger signs"),
        pytest.param(
            "revoke lost --since 2026-01-31T12:00:00Z --key root", 2, "already", id="once more"
        ),
        pytest.param(
            "trust next.txt --version 5 --key mine", 2, "role root", id="trust by no root"
        ),
        pytest.param("trust next.txt --version 4 --key root", 2, "--version 5", id="old version"),
        pytest.param(
            "rotate next.txt --new-root keys/root.key --version 9 --key root",
            2,
            "--version 5",
            id="a version that is left out",
        ),
    ],
)
def test_what_a_rig_would_refuse_about_trust_is_not_sent(
    desk: Desk, trusting: dict[str, str], words: str, code: int, says: str
) -> None:
    given = words.format(FUTURE=FUTURE).split()
    at = given.index("--key") + 1
    given[at] = f"keys/{given[at]}.key"
    if given[0] == "revoke":
        given[1] = trusting[given[1]]
    before = desk.rig.dropped(".cmd.json")
    refused = desk.run("key", *given, "--rig", "bench")
    assert (refused.returncode, says in refused.stderr) == (code, True), refused.stderr
    assert desk.rig.dropped(".cmd.json") == before


def test_what_a_rig_would_take_about_trust_is_sent(desk: Desk, trusting: dict[str, str]) -> None:
    before = len(desk.rig.dropped(".cmd.json"))
    for words in (
        ("revoke", trusting["mine"]),
        ("revoke", trusting["lost"], "--since", "2026-01-01T00:00:00Z"),
        ("trust", "next.txt", "--version", "5"),
    ):
        desk.told("key", *words, "--rig", "bench", "--key", "keys/root.key")
    assert len(desk.rig.dropped(".cmd.json")) == before + 3


def test_an_order_about_trust_to_a_rig_that_says_nothing_warns(
    desk: Desk, trusting: dict[str, str]
) -> None:
    assert trusting
    card = (desk.rig.outbox / "rig.json").rename(desk.folder / "card")
    sent = desk.run("key", "revoke", "0" * 32, "--rig", "bench", "--key", "keys/root.key")
    card.rename(desk.rig.outbox / "rig.json")
    assert sent.returncode == 0
    assert "shows in its receipt" in sent.stderr
