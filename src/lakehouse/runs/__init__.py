"""A run is a transaction: its own branch, written to, checked, and published to all tables at once or not at all."""
