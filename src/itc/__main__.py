"""`python -m itc`: the same as `itc`."""

from itc.cli import main

main()
