"""Where tables are found. One file per kind of catalog."""
