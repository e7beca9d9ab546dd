"""Dagster and dbt: pipelines as assets with partitions, checks and schedules; dbt runs as transactions."""
