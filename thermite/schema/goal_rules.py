"""What a kit says of a goal campaign's goals, as `assignment_created` keeps it.

With it and the contract beside it, an attempt's goals are decided again from `run` and `check`
events alone, without the kit.
"""

from thermite.schema.kit import Verifier
from thermite.schema.rule import MetricRule
from thermite.schema.strict import Strict


class GoalRules(Strict):
    """The part of a kit that a contract's goals name.

    verifiers: those of the goals and every gate before them; metrics: of thresholds, with the
    work of the cells that they are measured on; held_out: the contract's held-out cells that
    the kit has.
    """

    verifiers: dict[str, Verifier]
    metrics: dict[str, MetricRule]
    held_out: list[str]
