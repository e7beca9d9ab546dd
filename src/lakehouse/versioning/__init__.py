"""Branches, tags, the log of commits, publishing and reverting."""
