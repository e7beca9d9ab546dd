"""`lake serve`."""

from __future__ import annotations

import click

from lakehouse.cli.app import Context, command
from lakehouse.cli.show import note


@command("lake serve\nlake serve --port 8601\nLAKE_AUTH=off lake serve")
@click.option("--host", metavar="H", help="Address to listen on (default: serve.host, which is 127.0.0.1).")
@click.option("--port", type=click.IntRange(0, 65535), metavar="P", help="Port (default: serve.port, which is 8600).")
def serve(context: Context, host: str | None, port: int | None) -> None:
    """Serve this lake over HTTP until Ctrl-C: SQL, tables, branches, pipelines and the Iceberg REST catalog.

    The first start creates an admin key and prints it once. Beyond loopback it needs TLS (serve.tls_cert_file) or
    serve.behind_proxy.
    """
    from lakehouse.http.server import serve as run

    context.flags.update({"serve.host": host, "serve.port": port})
    run(context.settings(), note)
