"""`python -m thermite`: the same as the command `thermite`."""

from thermite.cli.root import main

main()
