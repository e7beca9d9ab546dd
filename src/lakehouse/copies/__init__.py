"""Whole lakes: verify, back up, restore, clone and migrate them."""
