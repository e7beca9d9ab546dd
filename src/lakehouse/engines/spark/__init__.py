"""Spark: its Java and jars, its fast start, sessions, and the daemon that keeps it warm."""
