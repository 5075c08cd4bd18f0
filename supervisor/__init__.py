"""The rig's outward face: a process of its own, with network, and a stranger to the judge.

What comes in: files in the inbox, which anybody may have written, and whatever the network
answers. What goes out: the original bytes of commands whose signature it has verified,
offered to the harness through one socket, and bundles that the harness asked for. It runs
as user `supervisor`, so it can read neither ledger, rig key, kits nor builds; the harness
trusts nothing it says and verifies again. Here live the watch on the inbox, admission,
the offer, fetching, and later the advisors. It starts no process but git's.
"""
