"""Understand SQL statements: parse them, and render them for an engine."""
