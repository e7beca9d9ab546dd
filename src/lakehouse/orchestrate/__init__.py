"""Dagster: the same pipelines as assets with partitions, checks, schedules and one lineage."""
