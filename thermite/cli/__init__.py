"""argv -> one call -> print, exit code.

What comes in: a command line. What goes out: results on stdout, progress and warnings on
stderr, and an exit code of `exits`. Each subcommand is one file with one click command
or group named `command`; `commands` names them all with one line of help each, so that
`thermite --help` imports none of them, and `root` imports the one that is chosen. A
subcommand calls the one room it is about, and `report` to print; it decides nothing.
What goes to a reader goes through `output`: it knows pipes, `--json`, narrow encodings
and hostile text, and no other file needs to.

A new subcommand, whole (and its line in `commands`, and its part of
docs/reference/command-line.md):

    @click.command("audit", epilog="Example: thermite audit rig/ledger.db")
    @click.argument("ledger", type=PATH)
    @with_output
    def command(output: Output, ledger: Path) -> None:
        ...  # a docstring: the command's help
        findings = verify(ledger)
        output.document({"findings": len(findings)})   # only with --json
        output.result(f"{len(findings)} findings")     # only without
        if findings:
            raise CommandEnds(Exit.AUDIT_FINDING)

A group about a noun is `@click.group(cls=NounGroup)`: bare, it runs its `list`. Errors of
a room (ThermiteError) are let through; `root` knows whose fault ends with which code.
"""
