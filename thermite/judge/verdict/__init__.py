"""From measured blocks to a decision: pure, recomputable from the ledger.

`coin` draws who runs first, `evidence` weighs a series of log-ratios, `rule` decides
after each counted block and `walk` goes from one to the next, `params` fills in what a
contract leaves out, `goals` says which verifier of a goal campaign comes next and what its
goals are told, and `reason` is the one place where foreign text is shortened and escaped.
Only the standard library.
"""
