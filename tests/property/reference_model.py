"""What a rig answers to a command, by the table of ledger and signing, 3.9, steps 2 to 12."""

from dataclasses import dataclass, field

from tests.property.sent import COMMAND, ROOT_KINDS, Revoked, Roles, Sent, Trusted


@dataclass
class Model:
    """roles: of each trusted key; since: of revoked ones; accepted: digests in order."""

    roles: Roles
    version: int = 1
    since: dict[str, str] = field(default_factory=dict)
    accepted: dict[str, tuple[str, str]] = field(default_factory=dict)

    def admit(self, sent: Sent) -> str | None:
        """Steps 2 to 7: the code of the first that fails."""
        bad = {key: self.may_not(key, sent) for key in self.roles if key in sent.signers}
        by_others = "issuer_did_not_sign" if None in bad.values() else next(iter(bad.values()), "")
        unread = sent.spoilt != "malformed_payload" and sent.spoilt
        signed = None if bad else "no_trusted_signature"
        steps = [unread, signed, sent.spoilt, bad.get(sent.issuer, by_others), sent.audience]
        return next((code for code in steps if code), None)

    def may_not(self, key: str, sent: Sent) -> str | None:
        """Step 6 for one key."""
        role = "root" if sent.kind in ROOT_KINDS else "command"
        allowed = None if role in self.roles[key] else "key_not_allowed"
        return "key_revoked" if key in self.since else allowed

    def decide(self, sent: Sent) -> str | None:
        """Steps 8 to 14: None is accepted, and then what follows from it holds."""
        taken = (sent.issuer, sent.id)
        reused = "id_reused" if taken in self.accepted.values() else None
        known = "duplicate" if sent.digest in self.accepted else reused
        code = known or sent.when or sent.after or self.follow(sent.body)
        if code is None:
            self.accepted[sent.digest] = taken
        return code

    def follow(self, body: Revoked | Trusted | None) -> str | None:
        """Step 12, and what an accepted command changes."""
        match body:
            case Trusted(version, roles) if version == self.version + 1:
                self.version, self.roles, self.since = version, roles, {}
            case Revoked(key) if key not in self.roles:
                return "not_found"
            case Revoked(key, since) if (self.roles[key], self.since.get(key)) == (COMMAND, None):
                self.since[key] = since
            case Revoked(key, since) if self.since.get(key, since) != since:
                self.since[key] = since
            case Revoked() | Trusted():
                return "wrong_state"
            case None:
                pass
        return None
