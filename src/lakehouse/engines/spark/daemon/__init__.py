"""The HTTP application: what the warm Spark's process serves over its socket, and `lake serve` will serve to others."""
