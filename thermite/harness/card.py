"""The card by which control gets to know this rig; PURE."""

from thermite.campaign.state import State
from thermite.schema.command import RigCard, Trust
from thermite.schema.judging import JUDGED_RUN_S
from thermite.schema.rig_settings import RigSettings


def rig_card(state: State, settings: RigSettings, *, checkpoint: str, at: str) -> RigCard:
    """Return what `outbox/rig.json` says.

    Args:
        checkpoint: the newest signed note; at: RFC 3339, when it is written.

    Raises:
        RuntimeError: there is no opened ledger yet; a bug.
    """
    opened, probe, test = state.opened, state.isolation, state.selftest
    if opened is None:
        raise RuntimeError("a card needs an opened ledger")
    return RigCard(
        v=1,
        name=settings.name,
        rig=opened.rig,
        key=opened.rig_key,
        ledger=opened.ledger,
        target=settings.target,
        isolation={} if probe is None else {"level": probe.level, "features": probe.features},
        grade=None if test is None else test.grade,
        sees=state.sees,
        checkpoint=checkpoint,
        at=at,
        timed_kit=None if test is None else test.kit.repo,
        run_s=None if test is None else test.figures.get(JUDGED_RUN_S),
        trust=Trust(version=state.trust_version, keys=state.trust),
    )
