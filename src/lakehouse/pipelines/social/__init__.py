"""The social pipeline: PostgreSQL tables to bronze and gold."""
