"""How others reach this lake: `lake serve`, `lake ui`, `lake keys` and `lake connect`."""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lakehouse.cli.app import Context, command, group
from lakehouse.cli.show import note, show_download, show_rows, show_status
from lakehouse.core.dataclass import dataclass
from lakehouse.core.errors import LakeError, ServiceError

if TYPE_CHECKING:
    from lakehouse.client.keys import KeyFacts, RemoteKeys
    from lakehouse.http.keys import KeyStore


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


@command("lake ui\nlake ui --no-browser")
@click.option("--no-browser", is_flag=True, help="Only print the link.")
def ui(context: Context, no_browser: bool) -> None:
    """Open the web console of this lake, signed in. Starts the service in the background if none runs.

    The link works once, within two minutes, for whoever has it. Others sign in with a key: lake keys create
    """
    from lakehouse.http.server import running_url
    from lakehouse.http.sessions import SignInLinks
    from lakehouse.stack import native
    from lakehouse.storage.local import LocalHome

    settings = context.settings()
    folder = LocalHome(settings.home, settings.shared).ready().folder
    if not running_url(folder):
        native.up(settings, ["serve"], status_reporter=show_status, download=show_download, progress=note)
    url = running_url(folder).replace("//0.0.0.0:", "//127.0.0.1:")
    if not url:
        raise ServiceError("The service of this lake does not say where it listens.", "lake logs serve")
    link = f"{url}/ui/link?token={SignInLinks(folder).create()}" if settings.auth else f"{url}/ui"
    if no_browser or not _open_browser(folder, link):
        sys.stdout.write(link + "\n")
        return
    note(f"Opened the console of {url} in the browser. Stop the service: lake down serve")


def _open_browser(folder: Path, link: str) -> bool:
    """Open a link in the browser of this machine, if it has one; by a private file, because arguments are public."""
    import os
    import webbrowser

    from lakehouse.process.files import write_private

    has_screen = sys.platform == "darwin" or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    if not has_screen:
        return False
    page = folder / "run" / "ui.html"
    write_private(page, f'<!doctype html><title>lakehouse</title><meta http-equiv="refresh" content="0;url={link}">')
    try:
        return webbrowser.open(page.as_uri())
    except webbrowser.Error:
        return False


_COLUMNS = ["id", "name", "scope", "namespaces", "branches", "created_at", "expires_at", "state"]
_SCOPES = ("reader", "writer", "admin", "agent")


@group("lake keys create --scope writer --namespace crm --days 90\nlake keys revoke 3f9a01c2de", bare_lists=True)
def keys() -> None:
    """List, create, revoke and rotate the API keys of `lake serve`. Without a command: list.

    A key is shown once, when it is created. Its first part, the id, names it in lists and logs.
    """


@command("lake keys list\nlake keys -o json", keys)
def list_(context: Context) -> None:
    """List the keys: id, scope, limits and state."""
    rows = [tuple(key[name] for name in _COLUMNS) for key in _keys(context).all()]
    if context.output == "json":
        rows = [tuple(list(value) if isinstance(value, tuple) else value for value in row) for row in rows]
    show_rows(_COLUMNS, rows, context.output)
    if not rows:
        note("There are no keys yet. Create one: lake keys create")


@command("lake keys create --name dashboards\nlake keys create --scope agent --branch-only exp --days 7", keys)
@click.option("--scope", type=click.Choice(_SCOPES), default="reader", help="What the key may do (default: reader).")
@click.option("--name", default="", metavar="TEXT", help="Who or what uses it (default: none).")
@click.option(
    "--namespace",
    "namespaces",
    multiple=True,
    metavar="NS",
    help="Limit it to a namespace; may be repeated (default: all).",
)
@click.option(
    "--branch-only",
    "branches",
    multiple=True,
    metavar="B",
    help="Limit it to a branch; may be repeated (default: all).",
)
@click.option("--days", type=click.FloatRange(min=0), metavar="N", help="Days until it expires (default: never).")
def create(context: Context, **options: Any) -> None:
    """Create a key and print it, once, to standard output."""
    _show_new(context, _keys(context).create(**options))


@command("lake keys revoke 3f9a01c2de", keys)
@click.argument("key")
def revoke(context: Context, key: str) -> None:
    """Revoke a key, named by its id: the service refuses it from now on."""
    note(f"Revoked {_keys(context).revoke(key)['id']}.")


@command("lake keys rotate 3f9a01c2de", keys)
@click.argument("key")
def rotate(context: Context, key: str) -> None:
    """Revoke a key and print a new one with the same rights."""
    _show_new(context, _keys(context).rotate(key))


@dataclass(frozen=True)
class _LocalKeys:
    """The keys of a lake of this machine, with the methods of `RemoteKeys`."""

    store: KeyStore

    def all(self) -> list[KeyFacts]:
        return [key.shown() for key in self.store.all()]

    def create(self, days: float | None, **options: Any) -> KeyFacts:
        from lakehouse.http.keys import KeyRequest

        expires = None if days is None else datetime.now(UTC) + timedelta(days=days)
        key, text = self.store.create(KeyRequest(**options, expires_at=expires))
        return {**key.shown(), "key": text}

    def revoke(self, key: str) -> KeyFacts:
        return self.store.revoke(key).shown()

    def rotate(self, key: str) -> KeyFacts:
        new, text = self.store.rotate(key)
        return {**new.shown(), "key": text}


def _keys(context: Context) -> _LocalKeys | RemoteKeys:
    from lakehouse.http.keys import KeyStore
    from lakehouse.storage.local import LocalHome

    settings = context.all_settings()
    if settings.url:
        return context.remote_lake.keys
    return _LocalKeys(KeyStore(LocalHome(settings.home, settings.shared).ready().folder))


def _show_new(context: Context, key: KeyFacts) -> None:
    """Print a new key: alone where the output goes to a file or a program, so that `> FILE` is a --key-file."""
    if context.output == "table" and not sys.stdout.isatty():
        sys.stdout.write(key["key"] + "\n")
    else:
        show_rows(["id", "scope", "key"], [(key["id"], key["scope"], key["key"])], context.output)
    note("The key is not stored and cannot be shown again.")


@command(
    "lake connect pyiceberg\nlake connect spark > session.py\nlake connect duckdb\nlake connect spark-connect > client.py\nlake --profile sql connect trino --show-secrets > etc/catalog/lake.properties"
)
@click.argument(
    "engine",
    metavar="ENGINE",
    type=click.Choice(["spark", "spark-connect", "pyiceberg", "duckdb", "trino", "dbt", "superset", "jdbc"]),
)
@click.option("--show-secrets", is_flag=True, help="Print passwords and keys (default: where they come from).")
def connect(context: Context, engine: str, show_secrets: bool) -> None:
    """Print the configuration with which ENGINE reads and writes the tables of this lake.

    ENGINE is spark, spark-connect, pyiceberg, duckdb, trino, dbt, superset or jdbc (for DBeaver and DataGrip). The output is Python code, SQL, or a
    configuration file of the engine. Without --show-secrets, passwords and keys are left out, and the first lines say where they come from. DuckDB only reads this way, unless
    the REST catalog serves the lake (lake up rest). spark-connect is for clients without Java (lake up connect).
    """
    from lakehouse.engine_config import redacted_snippet, snippet

    try:
        settings = context.settings()
        sys.stdout.write(snippet(engine, settings) if show_secrets else redacted_snippet(engine, settings))
    except OSError as exc:
        raise LakeError(f"The output cannot be written: {exc}") from exc
