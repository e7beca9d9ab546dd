"""What all packages share: protocols, requests, names, times, errors and results. Standard library only."""

__version__ = "0.1.0"
