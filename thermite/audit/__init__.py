"""An audit: a ledger read from outside, which nobody has to trust.

What comes in: a path, checkpoints from elsewhere, keys that the auditor trusts. What goes
out: one value (`thermite.schema.audit.Audit`) with every finding in it. `verify` is the
walk: `file` looks at the schema, `chain` at each row's hash, place and columns, `fold` at
what may follow what, `story` at who did it and when, `notes` at the signed checkpoints,
`against` at those kept outside. The file is opened for reading only and never repaired,
and nothing in it can end an audit with a traceback: it was written by a stranger.
`promotion` makes and checks the one file that carries a promotion away; `evidence`
recomputes what the promotion rests on.

`rejudge` makes everything that was decided again from runs and checks, `one_try` by one try.

It runs anywhere, as anybody: no rig, no git, no torch, no root. It must not know how a
ledger is written.
"""
