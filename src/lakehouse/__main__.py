"""`python -m lakehouse` is `lake`."""

from lakehouse.cli import main

main()
