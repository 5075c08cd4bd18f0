"""From measured blocks to a decision: pure, recomputable from the ledger.

`coin` draws who runs first, `evidence` weighs a series of log-ratios, `rule` decides
after each counted block, `params` fills in what a contract leaves out, and `reason` is
the one place where foreign text is shortened and escaped. Only the standard library.
"""
