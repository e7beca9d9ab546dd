"""`python -m lakehouse.rest`."""

from lakehouse.rest.process import main

main()
