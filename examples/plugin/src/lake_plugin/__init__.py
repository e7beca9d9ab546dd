"""A catalog, an engine, a format, a source, a pipeline and a profile that extend lakehouse without changing it."""
