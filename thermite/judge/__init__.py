"""The judge: one job in, one verdict out.

What comes in is a job (which candidate against which champion, by which contract) and a
desk (the rig's stages, the kit, the store of builds, a way to append events). What goes
out is a verdict; on the way the judge appends what it saw: builds, runs, checks, blocks
and decisions, one transaction a block. `job` is the walk; the steps below it never meet:

    build     a commit's source, built in slot `builder-0`, kept under its key
    run       one execution of a build on a cell, in slot `run-0`, on the spawner's clock
    check     the kit's own word on what a run left behind, in slot `check`
    measure   PURE: records and printed numbers to metric values and blocks
    verdict   PURE: blocks to decisions, by the rule of the page on judging

Beside the walk, `simulate` tries measure and verdict on noise and edits of known gain.

Nothing on the walk reads a clock or draws a random number: times come in records, the order of
the runs from the committed seed, so that every decision can be made again from the ledger
alone. This room must not know campaigns, agents or the ledger's file.
"""
