"""Translate queries in Spark's SQL to DuckDB's, where the answer is shown to be Spark's; name what prevents it elsewhere."""
