"""Orders about trust: what a rig's card shows that it would refuse is not sent."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec
import pytest

from tests.cli.operator_desk import Desk, known_desk
from thermite.command.keyring import PublicKey
from thermite.command.trust import read_trust
from thermite.control.rigs import read_card
from thermite.schema.command import Outcome, Trust


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
    (desk.folder / "next.txt").write_text("".join(lines[:2]), encoding="utf-8")
    (desk.folder / "back.txt").write_text("".join(lines), encoding="utf-8")
    taken_over = [line.replace("role=root", "role=command") for line in lines[:1]]
    taken_over += [line.replace("role=command", "role=root") for line in lines[1:2]]
    (desk.folder / "over.txt").write_text("".join(taken_over), encoding="utf-8")
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
        pytest.param("trust back.txt --version 5 --key root", 2, "--readmit", id="a revoked key"),
        pytest.param(
            "rotate back.txt --new-root keys/root.key --version 5 --key root",
            2,
            "this rig has revoked",
            id="a revoked key beside a new root",
        ),
        pytest.param("trust over.txt --version 5 --key root", 2, "--new-root", id="another root"),
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
        ("trust", "back.txt", "--version", "5", "--readmit"),
    ):
        told = desk.told("key", *words, "--rig", "bench", "--key", "keys/root.key")
        desk.rig.answer((desk.rig.inbox / "new" / told["file"]).read_bytes(), "accepted")
    assert len(desk.rig.dropped(".cmd.json")) == before + 4


def test_a_trust_that_was_just_sent_is_waited_for(desk: Desk, trusting: dict[str, str]) -> None:
    """Until the rig has decided, its card tells of the trust before."""
    assert trusting
    card = read_card(desk.rig.outbox, None).trust
    assert card is not None
    by_root = ("--rig", "bench", "--key", "keys/root.key")
    sent = desk.told("key", "trust", "next.txt", "--version", "5", *by_root)

    def decide() -> None:
        desk.rig.write_card(trust=msgspec.structs.replace(card, version=5))
        desk.rig.answer((desk.rig.inbox / "new" / sent["file"]).read_bytes(), "accepted")

    later = threading.Timer(1.5, decide)
    later.start()
    new = ("--new-root", "keys/root.key")
    told = desk.told("key", "rotate", "next.txt", *new, "--version", "6", *by_root)
    later.join()
    assert told["version"] == 6
    desk.rig.answer((desk.rig.inbox / "new" / told["file"]).read_bytes(), "accepted")


ANSWERED: tuple[tuple[str, tuple[str, ...], str], ...] = (
    ("trust", ("next.txt", "--version", "5"), "rig bench has trust version 5"),
    (
        "rotate",
        ("next.txt", "--version", "5", "--new-root", "keys/root.key"),
        "rig bench has trust version 5",
    ),
    ("revoke", ("{mine}",), "key {mine} is not trusted since "),
)


@pytest.fixture
def asked(desk: Desk, trusting: dict[str, str]) -> dict[str, str]:
    """The ids of keys, of a rig that has trust version 4 whatever was sent before."""
    card = read_card(desk.rig.outbox, None).trust
    assert card is not None
    desk.rig.write_card(trust=msgspec.structs.replace(card, version=4))
    return trusting


def words_of(trusting: dict[str, str], given: tuple[str, ...]) -> list[str]:
    by_root = ("--rig", "bench", "--key", "keys/root.key")
    return [*(one.format(**trusting) for one in given), *by_root]


@contextmanager
def answering(desk: Desk, outcome: Outcome, **changed: object) -> Iterator[None]:
    """Answer the next order as soon as it lies in the inbox."""
    before, over = set(desk.rig.dropped(".cmd.json")), threading.Event()

    def answer() -> None:
        while not over.wait(0.02):
            for new in {*desk.rig.dropped(".cmd.json")} - before:
                desk.rig.answer(new.read_bytes(), outcome, **changed)
                return

    thread = threading.Thread(target=answer)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@pytest.mark.parametrize(("command", "given", "then"), ANSWERED, ids=[one[0] for one in ANSWERED])
def test_wait_returns_with_what_the_rig_answered(
    desk: Desk, asked: dict[str, str], command: str, given: tuple[str, ...], then: str
) -> None:
    """A stolen key is out when the rig says so, not when the order is sent."""
    with answering(desk, "accepted"):
        done = desk.run("key", command, *words_of(asked, given), "--wait")
    assert done.returncode == 0, done.stderr
    assert f"accepted: event 7; {then.format(**asked)}" in done.stdout


def test_wait_ends_with_the_rigs_refusal_or_says_that_there_was_no_answer(
    desk: Desk, asked: dict[str, str]
) -> None:
    words = words_of(asked, ANSWERED[0][1])
    with answering(desk, "refused", code="trust_version", message="version 5 is there"):
        refused = desk.told("key", "trust", *words, "--wait", code=4)
    assert refused["error"] == "trust_version: version 5 is there"
    assert refused["receipt"]["outcome"] == "refused"
    before = set(desk.rig.dropped(".cmd.json"))
    late = desk.run("key", "trust", *words, "--wait", "--timeout-s", "0")
    assert (late.returncode, "no answer in 0 s" in late.stderr) == (7, True)
    (new,) = {*desk.rig.dropped(".cmd.json")} - before
    desk.rig.answer(new.read_bytes(), "accepted")  # or the next one waits for it


@pytest.mark.parametrize(("command", "given", "then"), ANSWERED, ids=[one[0] for one in ANSWERED])
def test_what_is_sent_and_not_answered_is_said_to_be_open(
    desk: Desk, asked: dict[str, str], command: str, given: tuple[str, ...], then: str
) -> None:
    before = set(desk.rig.dropped(".cmd.json"))
    done = desk.run("key", command, *words_of(asked, given))
    (new,) = {*desk.rig.dropped(".cmd.json")} - before
    desk.rig.answer(new.read_bytes(), "accepted")
    assert done.returncode == 0
    assert then.format(**asked) not in done.stdout
    assert done.stdout.splitlines()[-1] == (
        "not answered yet: the rig trusts as before until it has accepted, which thermite receipts"
        " list --rig bench shows; --wait waits for it"
    )


def test_on_the_rig_itself_nobody_is_waited_for(desk: Desk, trusting: dict[str, str]) -> None:
    assert trusting
    done = desk.run("key", "trust", "next.txt", "--state", "rig", "--yes", "--wait")
    assert (done.returncode, "nobody has to answer" in done.stderr) == (2, True)


def test_an_order_about_trust_to_a_rig_that_says_nothing_warns(
    desk: Desk, trusting: dict[str, str]
) -> None:
    assert trusting
    card = (desk.rig.outbox / "rig.json").rename(desk.folder / "card")
    sent = desk.run("key", "revoke", "0" * 32, "--rig", "bench", "--key", "keys/root.key")
    card.rename(desk.rig.outbox / "rig.json")
    assert sent.returncode == 0
    assert "shows in its receipt" in sent.stderr
