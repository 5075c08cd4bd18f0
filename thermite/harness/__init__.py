"""The only room that reads, decides, acts and appends.

The harness is one process of a rig, without privileges and without network. It alone
writes the ledger and holds the rig's key, the kits and the builds. `door` decides on the
commands that the supervisor offers; `campaigns` runs one thread for each lane; the judge is
one at a time. Every decision is taken by a pure function of another room from the state
that `book` folds; this room only carries the answers out. Killed at any moment, it starts
again from the ledger (`resume`).
"""
