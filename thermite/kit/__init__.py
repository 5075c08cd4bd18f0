"""A kit on its way from an author's folder to the judge.

In come a folder, a bundle or a repository, all written by other people. Out come a `Kit`
that has no problem, the files of one commit as raw bytes, and the texts that say why
not. `manifest` reads kit.json, `folder` looks at the files beside it, `fit` holds it
against a contract, `placeholder` fills in a command's arguments; those are pure.
`bundle`, `folder` and `export` run git, through `git` alone: argv only, a closed
environment, no hooks, no filters, no checkout. A bundle is hostile until its objects
have passed fsck in a quarantine of their own. Nothing here knows a ledger, a rig or a
campaign, and nothing here decides what a refusal means for a candidate.
"""
