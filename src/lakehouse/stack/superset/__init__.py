"""Superset: its packages, its configuration, and the starter dashboards that are imported through its API."""
