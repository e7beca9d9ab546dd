"""DuckDB in processes of its own, warm and locked down: for a service that runs the statements of others."""
