"""Table formats behind one interface: `iceberg` and `hudi`."""
