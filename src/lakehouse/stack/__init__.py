"""The servers of the full stack: one description each, started natively or rendered to compose."""
