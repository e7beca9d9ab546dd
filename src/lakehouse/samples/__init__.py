"""Data to try the pipelines with: generated, with the true schema and the known dirt of what is published."""
