"""Compares DuckDB's answers with Spark's: edge values in tables, statements over them, and Spark's recorded answers.

`make conformance-record` records the answers; `python -m tests.support.conformance.check` compares without a JVM.
"""
