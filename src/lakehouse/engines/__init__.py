"""What runs SQL: DuckDB in this process, Spark wherever it is."""
