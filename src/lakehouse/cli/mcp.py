"""`lake mcp`: the lake as tools of AI agents."""

from __future__ import annotations

from contextlib import nullcontext

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
        from lakehouse.mcp.server import build_server
    except ImportError as exc:
        raise NotInstalledError(str(exc.name), "mcp") from exc
    lake = context.lake
    build_server(lambda call: nullcontext(lake), writes=write).run("stdio")
