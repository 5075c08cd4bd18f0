"""The operator's side: keys, rigs, kits that are kept, and orders on their way to a rig.

What comes in: a contract somebody wrote, a project and a kit somewhere, a rig's signed
words. What goes out: a signed command and its bundles in a rig's inbox, and answers. The
walk of an order: `contract_file` (text to a document) -> `sources` (project and kit to
full ids) -> `complete` (one whole contract, held against kit, rig and settings) ->
`forecast` (what it will cost) -> `bundles` -> `order` (signed) -> `drop` -> `receipts`.
What control keeps lies in one private folder, `home`: keys, kept kits, receipts, rigs
and settings. It needs git and no root, compiler, rig or torch, and it believes a rig only
as far as the rig's key has signed.
"""
