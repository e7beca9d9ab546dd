"""Settings: lake.toml < .env < LAKE_* < flags, checked once at the door."""
