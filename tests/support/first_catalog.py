"""The SQLite catalog of the first version of the lake, with a branch and a dropped table, as SQL."""

from __future__ import annotations

VERSION_1 = """
CREATE TABLE iceberg_tables (catalog_name VARCHAR(255) NOT NULL, table_namespace VARCHAR(255) NOT NULL,
  table_name VARCHAR(255) NOT NULL, metadata_location VARCHAR(1000), previous_metadata_location VARCHAR(1000),
  iceberg_type VARCHAR(5), PRIMARY KEY (catalog_name, table_namespace, table_name));
CREATE TABLE iceberg_namespace_properties (catalog_name VARCHAR(255) NOT NULL, namespace VARCHAR(255) NOT NULL,
  property_key VARCHAR(255) NOT NULL, property_value VARCHAR(1000),
  PRIMARY KEY (catalog_name, namespace, property_key));
CREATE TABLE lake_dropped (id INTEGER PRIMARY KEY AUTOINCREMENT, namespace VARCHAR(255) NOT NULL,
  table_name VARCHAR(255) NOT NULL, dropped_at VARCHAR(40) NOT NULL);
INSERT INTO iceberg_tables VALUES ('lake', 'crm', 'leads', 'a', NULL, 'TABLE'), ('run_1', 'crm', 'leads', 'b', 'a', 'TABLE'),
  ('lake__dropped', 'crm', 'old#1', 'c', NULL, 'TABLE');
INSERT INTO lake_dropped VALUES (1, 'crm', 'old', '2026-01-01');
PRAGMA user_version=1;
"""
