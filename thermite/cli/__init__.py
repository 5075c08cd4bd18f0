"""argv -> one call -> print, exit code.

What comes in: a command line. What goes out: results on stdout, progress and warnings on
stderr, and an exit code of `exits`. Each subcommand is one file with one click command
or group named `command`; `commands` names them all with one line of help each, so that
`thermite --help` imports none of them, and `root` imports the one that is chosen. A
subcommand calls the one room it is about, and `report` to print; it decides nothing.
What goes to a reader goes through `output`: it knows pipes, `--json`, narrow encodings
and hostile text, and no other file needs to.
"""
