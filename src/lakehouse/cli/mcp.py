"""`lake mcp`: the lake as tools of AI agents."""

from __future__ import annotations

import click

from lakehouse.cli.app import Context, command
from lakehouse.core.errors import NotInstalledError


@command("lake mcp\nlake mcp --write\nlake --url http://127.0.0.1:8600 mcp")
@click.option("--write", is_flag=True, help="Offer tools that write, on branches only (default: only read).")
def mcp(context: Context, write: bool) -> None:
    """Serve this lake to an AI agent over standard input and output, by the Model Context Protocol.

    The agent's program starts this command: docs/mcp.md has the lines for its settings. `lake serve` offers the same
    tools over HTTP at /mcp, with the rights of the key that a request has.
    """
    try:
        from lakehouse.mcp.stdio import serve_stdio
    except ImportError as exc:
        raise NotInstalledError(str(exc.name), "mcp") from exc
    serve_stdio(context.lake, writes=write)
