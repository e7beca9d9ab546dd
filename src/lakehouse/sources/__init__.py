"""Where data comes from: what was published, and how to read it."""
