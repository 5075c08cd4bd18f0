"""The rule of promotion, tried on edits whose true gain is known: pure but for a seed.

What comes in is noise (a model of `noise`, or a recording that `recorded` reads), edits
(`edit`), and a seed; what goes out is how often a rule errs, what it costs and what it claims
(`figures`). `attempt` walks one attempt as a job does: it draws each block's order with the
judge's own coin, writes the runs down as a ledger holds them, and lets `judge.measure` make
the blocks and `judge.verdict` decide. There is no second copy of the rule to drift from the
first. `peers` holds what other harnesses do, in small models of their decision rules, so
that both see the same edits on the same noise; `campaign` lets either climb.

A simulated null is exact: both arms are one program. Real edits also move code about, which
shifts a time repeatably and is no noise; nothing here speaks of that. Source: the design page
on judging, sections 2.4, 2.5 and 4.
"""
