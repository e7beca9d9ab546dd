"""The answers: facts and statistics."""
