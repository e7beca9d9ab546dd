"""Spark: the Java and the jars it needs, how it starts fast, and how a statement reaches it."""
