"""`python -m thermite`: the same as the console script."""

from thermite.cli.root import main

main()
