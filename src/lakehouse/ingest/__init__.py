"""Ingest files into a table: one atomic commit, each file once."""
