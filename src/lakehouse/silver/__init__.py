"""Rows we believe: typed, plausible, one per key."""
