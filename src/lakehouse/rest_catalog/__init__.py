"""Our own Iceberg REST catalog: a server over the SQL catalog, so that any engine can attach the lake."""
