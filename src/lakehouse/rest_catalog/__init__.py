"""Our own Iceberg REST catalog: the SQL catalog's pointers, served so that any engine can attach the lake."""
