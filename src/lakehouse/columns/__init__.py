"""Columns that several transformations work out alike."""
