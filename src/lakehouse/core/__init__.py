"""What every room agrees on: names, times, errors, interfaces. Standard library only."""
