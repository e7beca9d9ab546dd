"""The tables of a SQL catalog: the two of Iceberg's JdbcCatalog, and those of branches, tags, drops and the log."""

from __future__ import annotations

from lakehouse.core.names import CATALOG

#: Increased when a table is added or changed; the database stores the version that it has.
VERSION = 2

#: The catalog name of dropped tables.
DROPPED = f"{CATALOG}__dropped"

# Iceberg's JdbcCatalog schema V1 (V0 lacks iceberg_type and so has no views). The first client creates the tables.
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
  id {identity}, namespace VARCHAR(255) NOT NULL, table_name VARCHAR(255) NOT NULL,
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
  id {identity}, made_at VARCHAR(40) NOT NULL, kind VARCHAR(16) NOT NULL, branch VARCHAR(255) NOT NULL,
  run VARCHAR(255) NOT NULL, author VARCHAR(255) NOT NULL, pipeline VARCHAR(255) NOT NULL,
  source VARCHAR(4000) NOT NULL, message VARCHAR(4000) NOT NULL);
CREATE TABLE IF NOT EXISTS lake_log_tables (
  log_id BIGINT NOT NULL, namespace VARCHAR(255) NOT NULL, table_name VARCHAR(255) NOT NULL,
  before_location VARCHAR(1000), after_location VARCHAR(1000), PRIMARY KEY (log_id, namespace, table_name));
CREATE INDEX IF NOT EXISTS lake_log_runs ON lake_log (run);
"""

#: Migration from version 1, in which drops had no branch and branches had no rows of their own.
_FROM_1 = (
    f"ALTER TABLE lake_dropped ADD COLUMN branch VARCHAR(255) NOT NULL DEFAULT '{CATALOG}'",
    "INSERT INTO lake_branches SELECT DISTINCT catalog_name, 'main', '', '', '', '' FROM iceberg_tables"
    f" WHERE catalog_name NOT IN ('{CATALOG}', '{DROPPED}')",
)


def statements(identity: str) -> tuple[str, ...]:
    """Return the statements that create the tables, or migrate those of version 1.

    Args:
        identity: the type of an auto-increment primary key in the database's dialect.
    """
    created = tuple(filter(None, (statement.strip() for statement in _TABLES.format(identity=identity).split(";"))))
    return (*created, *_FROM_1)
