"""`python -m lakehouse.rest_catalog`."""

from lakehouse.rest_catalog.process import main

main()
