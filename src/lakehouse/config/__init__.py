"""Settings: lake.toml < .env < LAKE_* < flags, validated once, on loading."""
