"""Rows as published, with where and when they came from."""
