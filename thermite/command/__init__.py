"""Signed bytes in, trusted values out; and the other way round.

A sender seals a payload in a DSSE envelope: Ed25519 signatures over the payload's exact
bytes and its type. A reader verifies first and looks at the payload only afterwards, at
the very bytes that were verified, so there is no canonical form to get wrong. The walk on
the rig: `envelope` (bytes to parts) -> `keyring` (which trusted keys signed) -> `verify`
(payload, rights, rig) -> a `Command`, which can only be had from there. Control's side is
`sign`. What a rig says is signed too: `receipt`, `rig_card` and `note` (checkpoints).

Supervisor, harness, control and an auditor each call this room for themselves; none takes
another's word. It must not know files, sockets or the clock: bytes, keys and `now` come in.
"""
