"""Paths as URIs, the way Hadoop, PyIceberg and DuckDB all read them: a scheme in front, and nothing encoded."""

from __future__ import annotations

from pathlib import Path


def file_uri(path: Path) -> str:
    """`file:///a b/c`. Python's own as_uri() would write `%20`, which the others take for part of the name."""
    return f"file://{path}"


def local_path(uri: str) -> Path:
    """The path that such a URI, or a plain path, names."""
    rest = uri.removeprefix("file:")
    return Path("/" + rest.lstrip("/")) if uri.startswith("file:") else Path(uri)
