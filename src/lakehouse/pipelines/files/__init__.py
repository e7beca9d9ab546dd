"""The files pipeline: ingest a watched folder."""
