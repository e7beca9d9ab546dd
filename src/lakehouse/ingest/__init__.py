"""Files into a table: one atomic commit, each file once, nothing lost."""
