"""Questions in plain words: a semantic layer, a planner that refuses rather than guesses, and answers with their SQL."""
