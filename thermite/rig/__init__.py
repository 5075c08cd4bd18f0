"""This machine as the harness sees it.

The harness has no privileges: what needs them (another user's process, its folder, its
end) is asked of the spawner: `rig.stage` is the client that asks, `rig.line` its messages. The
judge and the lanes see only the protocols of `rig.stages`, so that a simulated rig can
stand in. This room knows nothing of kits, ledgers or campaigns.
"""
