"""Inbox, verification and ledger against a reference model of a page.

Hypothesis sends commands of every kind and fault, again and in any order, to a real door with
a real ledger, starts it again in between, and compares each answer with the model's, as well
as what the supervisor's gate says of it. At the end the ledger must hold what the model
accepted, in order, pass an audit, and have a receipt for each.
"""

import base64
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, cast

import msgspec
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, rule

from supervisor.admit import Gate, Refused
from tests.harness.live import Knock, Live, NoStages
from tests.orders import at, trusted
from tests.property.reference_model import Model
from tests.property.sent import BOTH, COMMAND, Revoked, Roles, Sent, Trusted
from thermite.audit.verify import audit
from thermite.command.envelope import digest
from thermite.command.receipt import open_receipt
from thermite.command.signing_key import SigningKey
from thermite.harness import clock
from thermite.ledger.replay import recorded
from thermite.rig.stages import Stages
from thermite.schema.event import CommandAccepted
from thermite.schema.offer import Decided, Wait

TRUSTS: Final[list[Roles]] = [
    {"root": BOTH, "mate": COMMAND, "lost": COMMAND},
    {"root": frozenset({"root"}), "mate": COMMAND},
    {"lost": COMMAND, "root": BOTH},
]
NAMES = ("root", "mate", "lost", "stranger")
MINUTES: Final = {
    None: (0, 60),
    "ahead": (4, 60),
    "behind": (-60, -4),
    "not_yet_valid": (30, 60),
    "expired": (-120, -10),
    "window_too_long": (0, 8 * 24 * 60),
}
"""From when until when a command is valid; a clock may be 5 minutes off (3.9, step 10)."""
SPOIL: Final[dict[str, Callable[[dict[str, Any]], object]]] = {
    "malformed_envelope": lambda whole: whole.update(signatures=[]),
    "unknown_payload_type": lambda whole: whole.update(payloadType="text/plain"),
    "no_trusted_signature": lambda whole: whole.update(
        payload=base64.b64encode(base64.b64decode(whole["payload"]) + b" ").decode()
    ),
}


def mostly_none(*odd: str) -> st.SearchStrategy[str | None]:
    """Nothing wrong most of the time, so that commands come as far as the later steps."""
    return st.sampled_from([None] * (3 * len(odd)) + list(odd))


def chosen(*kinds: object) -> st.SearchStrategy[Any]:
    return st.sampled_from(kinds)


class RigAndModel(RuleBasedStateMachine):
    """A rig, the supervisor's gate, and the model of both."""

    sent = Bundle("sent")

    @initialize()
    def begin(self) -> None:
        self.folder = tempfile.TemporaryDirectory(prefix="thermite-model-")
        self.live = Live(Path(self.folder.name) / "rig", cast("Stages", NoStages()))
        self.keys = {name: SigningKey.generate() for name in NAMES}
        self.keys["root"] = self.live.orders.key
        self.model = Model({"root": BOTH})
        self.waits = 0
        self.live.open()
        self.knock = Knock(self.live)
        self.offer(self.made("root", frozenset({"root"}), Trusted(2, TRUSTS[0])))

    @rule(
        target=sent,
        issuer=chosen("root", "root", "root", "mate", "lost", "stranger"),
        also=st.frozensets(chosen(*NAMES), max_size=2),
        about=st.one_of(
            st.none(),
            st.builds(
                Revoked, chosen(*NAMES), chosen("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z")
            ),
            st.builds(Trusted, chosen(0, 1, 1, 1, 2), chosen(*TRUSTS)),
        ),
        signed_by=chosen("issuer", "issuer", "issuer", "others"),
        again=st.none() | st.none() | sent,
        spoilt=mostly_none(*SPOIL, "malformed_payload"),
        audience=mostly_none("wrong_rig", "wrong_ledger"),
        when=mostly_none("ahead", "behind", "not_yet_valid", "expired", "window_too_long"),
        after=mostly_none("fits", "ledger_forked", "ledger_rolled_back"),
    )
    def send_one(
        self,
        issuer: str,
        also: frozenset[str],
        about: Revoked | Trusted | None,
        again: Sent | None,
        *,
        signed_by: str,
        **wrong: str | None,
    ) -> Sent:
        """Send a command: signed by its issuer or not, with a new id or one that was used."""
        if isinstance(about, Trusted):
            about = about._replace(version=self.model.version + about.version)
        signers = also | {issuer} if signed_by == "issuer" else also or frozenset({"stranger"})
        one = self.made(issuer, signers, about, None if again is None else again.id, **wrong)
        self.offer(one)
        return one

    @rule(one=sent)
    def send_again(self, one: Sent) -> None:
        """Send the same bytes once more."""
        self.offer(one)

    def offer(self, one: Sent) -> None:
        """Drop a command and compare what both processes say of it with the model."""
        gate = Gate(self.live.state / "trust.json")
        assert gate.refresh()
        admitted = gate.admit(one.raw, clock.now())
        code = self.model.admit(one)
        assert (admitted.code if isinstance(admitted, Refused) else None) == code
        code = code or self.model.decide(one)
        answer = self.knock.offer(one.raw)
        if code == "not_yet_valid":
            self.waits += 1
            assert isinstance(answer, Wait), answer
            return
        assert isinstance(answer, Decided), answer
        outcome = {None: "accepted", "duplicate": "duplicate"}.get(code, "refused")
        assert (answer.outcome, answer.code) == (outcome, code)

    @rule(turns=st.integers(0, 5))
    def start_again(self, turns: int) -> None:
        """Start the door again, now and then: nothing that counts is only remembered."""
        if turns:
            return
        self.live.reopen()
        self.live.open()
        self.knock = Knock(self.live)

    def teardown(self) -> None:
        if not hasattr(self, "live"):
            return
        self.live.close()
        rows = [row.event.data for row in recorded(self.live.folder.ledger)]
        accepted = [one.sha256 for one in rows if isinstance(one, CommandAccepted)]
        assert accepted == list(self.model.accepted)
        found = audit(self.live.folder.ledger, trusted=[self.live.orders.rig_key.public])
        assert not found.fails, found.findings
        for sha256 in accepted:
            path = self.live.folder.outbox / f"{sha256[:12]}.accepted.receipt.json"
            receipt = open_receipt(path.read_bytes(), self.live.orders.rig_key.public)
            assert (receipt.command.sha256, receipt.outcome) == (sha256, "accepted")
        assert len(self.live.files("new")) == self.waits
        self.folder.cleanup()

    def made(
        self,
        issuer: str,
        signers: frozenset[str],
        about: Revoked | Trusted | None,
        command_id: str | None = None,
        **wrong: str | None,
    ) -> Sent:
        kind, body = self.body(about)
        begins, ends = MINUTES[wrong.get("when")]
        changed: dict[str, object] = {
            "issuer": self.keys[issuer].public.id,
            "issued_at": at(begins),
            "not_before": at(begins),
            "expires_at": at(ends),
            "after": self.after(wrong.get("after")),
        }
        changed |= {} if command_id is None else {"id": command_id}
        audience, spoilt = wrong.get("audience"), wrong.get("spoilt")
        changed |= {} if audience is None else {audience.removeprefix("wrong_"): "9" * 32}
        changed |= {"surplus": 1} if spoilt == "malformed_payload" else {}
        payload = self.live.orders.payload(kind, body, **changed)
        raw = self.live.orders.sealed(payload, *(self.keys[name] for name in sorted(signers)))
        if spoilt in SPOIL:
            whole = json.loads(raw)
            SPOIL[spoilt](whole)
            raw = json.dumps(whole).encode()
        when, after = wrong.get("when"), wrong.get("after")
        return Sent(
            raw=raw,
            digest=digest(payload),
            id=json.loads(payload)["id"],
            kind=kind,
            issuer=issuer,
            signers=signers,
            body=about,
            spoilt=spoilt,
            audience=audience,
            when=when if when not in {"ahead", "behind"} else None,
            after=after if after != "fits" else None,
        )

    def body(self, about: Revoked | Trusted | None) -> tuple[str, dict[str, object]]:
        match about:
            case Trusted(version, roles):
                keys = [
                    trusted(self.keys[name], roles=sorted(has, reverse=True), label=name)
                    for name, has in roles.items()
                ]
                told = msgspec.to_builtins(keys)
                return "update_trust", {"version": version, "keys": told}
            case Revoked(name, since):
                return "revoke_key", {"key": self.keys[name].public.id, "since": since}
            case _:
                return "checkpoint_now", {}

    def after(self, kind: str | None) -> dict[str, object] | None:
        ledger = self.live.book.ledger
        if kind is None:
            return None
        size = ledger.size + (10**6 if kind == "ledger_rolled_back" else 0)
        root = ledger.root_at(ledger.size) if kind == "fits" else bytes(32)
        return {"size": size, "root": base64.b64encode(root).decode()}


RigAndModel.TestCase.settings = settings(
    max_examples=12, stateful_step_count=40, suppress_health_check=list(HealthCheck)
)
TestRigAndModel = RigAndModel.TestCase


def test_the_model_stays_small_enough_to_be_checked_by_reading() -> None:
    model = Path(__file__).with_name("reference_model.py").read_text(encoding="utf-8")
    lines = [line for line in model.splitlines() if line.strip()]
    assert len(lines) <= 50
