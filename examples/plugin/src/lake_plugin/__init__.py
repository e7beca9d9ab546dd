"""An engine, a catalog, a source and a pipeline that extend lakehouse without changing it."""
