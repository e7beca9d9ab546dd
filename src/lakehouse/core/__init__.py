"""What all packages share: protocols, requests, names, times, errors and results. Standard library only."""
