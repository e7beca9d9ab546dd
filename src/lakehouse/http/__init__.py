"""The REST service: the same lake behind HTTP, with keys, limits, jobs and an audit log."""
