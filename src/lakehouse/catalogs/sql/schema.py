"""The tables of a SQL catalog: Iceberg's own two, and what branches, tags, drops and the log need beside them."""

from __future__ import annotations

from lakehouse.core.names import CATALOG

#: Raised when a table is added or changed; a database says which version it has.
VERSION = 2

#: The catalog name under which the rows of dropped tables are kept.
DROPPED = f"{CATALOG}__dropped"

# Iceberg's JdbcCatalog schema V1 (V0 lacks iceberg_type and so has no views). Whoever comes first makes the tables.
_TABLES = """
CREATE TABLE IF NOT EXISTS iceberg_tables (
  catalog_name VARCHAR(255) NOT NULL, table_namespace VARCHAR(255) NOT NULL, table_name VARCHAR(255) NOT NULL,
  metadata_location VARCHAR(1000), previous_metadata_location VARCHAR(1000), iceberg_type VARCHAR(5),
  PRIMARY KEY (catalog_name, table_namespace, table_name));
CREATE TABLE IF NOT EXISTS iceberg_namespace_properties (
  catalog_name VARCHAR(255) NOT NULL, namespace VARCHAR(255) NOT NULL,
  property_key VARCHAR(255) NOT NULL, property_value VARCHAR(1000),
  PRIMARY KEY (catalog_name, namespace, property_key));
CREATE TABLE IF NOT EXISTS lake_dropped (
  id {counted}, namespace VARCHAR(255) NOT NULL, table_name VARCHAR(255) NOT NULL,
  dropped_at VARCHAR(40) NOT NULL);
CREATE TABLE IF NOT EXISTS lake_branches (
  name VARCHAR(255) NOT NULL PRIMARY KEY, made_from VARCHAR(255) NOT NULL, state VARCHAR(64) NOT NULL,
  made_at VARCHAR(40) NOT NULL, author VARCHAR(255) NOT NULL, message VARCHAR(4000) NOT NULL);
CREATE TABLE IF NOT EXISTS lake_branch_tables (
  branch VARCHAR(255) NOT NULL, namespace VARCHAR(255) NOT NULL, table_name VARCHAR(255) NOT NULL,
  metadata_location VARCHAR(1000) NOT NULL, PRIMARY KEY (branch, namespace, table_name));
CREATE TABLE IF NOT EXISTS lake_tags (
  name VARCHAR(255) NOT NULL PRIMARY KEY, made_from VARCHAR(255) NOT NULL, state VARCHAR(64) NOT NULL,
  made_at VARCHAR(40) NOT NULL, author VARCHAR(255) NOT NULL, message VARCHAR(4000) NOT NULL);
CREATE TABLE IF NOT EXISTS lake_tag_tables (
  tag VARCHAR(255) NOT NULL, namespace VARCHAR(255) NOT NULL, table_name VARCHAR(255) NOT NULL,
  metadata_location VARCHAR(1000) NOT NULL, iceberg_type VARCHAR(5), PRIMARY KEY (tag, namespace, table_name));
CREATE TABLE IF NOT EXISTS lake_log (
  id {counted}, made_at VARCHAR(40) NOT NULL, kind VARCHAR(16) NOT NULL, branch VARCHAR(255) NOT NULL,
  run VARCHAR(255) NOT NULL, author VARCHAR(255) NOT NULL, pipeline VARCHAR(255) NOT NULL,
  source VARCHAR(4000) NOT NULL, message VARCHAR(4000) NOT NULL);
CREATE TABLE IF NOT EXISTS lake_log_tables (
  log_id BIGINT NOT NULL, namespace VARCHAR(255) NOT NULL, table_name VARCHAR(255) NOT NULL,
  before_location VARCHAR(1000), after_location VARCHAR(1000), PRIMARY KEY (log_id, namespace, table_name));
CREATE INDEX IF NOT EXISTS lake_log_runs ON lake_log (run);
"""

#: From version 1, where every drop was main's and a branch was known by its tables alone.
_FROM_1 = (
    f"ALTER TABLE lake_dropped ADD COLUMN branch VARCHAR(255) NOT NULL DEFAULT '{CATALOG}'",
    "INSERT INTO lake_branches SELECT DISTINCT catalog_name, 'main', '', '', '', '' FROM iceberg_tables"
    f" WHERE catalog_name NOT IN ('{CATALOG}', '{DROPPED}')",
)


def statements(counted: str) -> tuple[str, ...]:
    """What makes a new database, or one of version 1, one of today's.

    Args:
        counted: the type of a column that counts up by itself, in the database's own words.
    """
    made = tuple(filter(None, (each.strip() for each in _TABLES.format(counted=counted).split(";"))))
    return (*made, *_FROM_1)
