"""The walk: what a job is made of, in the order in which it happens.

`judge` takes an attempt (or a candidate alone) to its verdict, `re_anchor` measures the
champion against the commit that the campaign started from, `selftest` measures a build
against itself. `bench` sets up what all runs of a job share and makes single runs,
`tape` holds the facts so far and appends new ones, `ending` says what the facts lead to.

A job is a function of its facts: killed anywhere, it goes on from what the ledger holds.
"""

from thermite.judge.job.attempt import judge
from thermite.judge.job.desk import Desk
from thermite.judge.job.re_anchor import Claim, re_anchor
from thermite.judge.job.selftest import selftest

__all__ = ["Claim", "Desk", "judge", "re_anchor", "selftest"]
