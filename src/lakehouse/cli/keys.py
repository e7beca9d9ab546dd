"""`lake keys`: the API keys of the service."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import click

from lakehouse.cli.app import Context, command, group
from lakehouse.cli.show import note, show_rows

if TYPE_CHECKING:
    from lakehouse.http.keys import ApiKey, KeyStore

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
    rows = [tuple(key.shown()[name] for name in _COLUMNS) for key in _store(context).all()]
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
def create(context: Context, days: float | None, **options: Any) -> None:
    """Create a key and print it, once, to standard output."""
    from lakehouse.http.keys import KeyRequest

    expires = None if days is None else datetime.now(UTC) + timedelta(days=days)
    _show_new(context, *_store(context).create(KeyRequest(**options, expires_at=expires)))


@command("lake keys revoke 3f9a01c2de", keys)
@click.argument("key")
def revoke(context: Context, key: str) -> None:
    """Revoke a key, named by its id: the service refuses it from now on."""
    note(f"Revoked {_store(context).revoke(key).id}.")


@command("lake keys rotate 3f9a01c2de", keys)
@click.argument("key")
def rotate(context: Context, key: str) -> None:
    """Revoke a key and print a new one with the same rights."""
    _show_new(context, *_store(context).rotate(key))


def _store(context: Context) -> KeyStore:
    from lakehouse.http.keys import KeyStore
    from lakehouse.storage.local import LocalHome

    settings = context.settings()
    return KeyStore(LocalHome(settings.home, settings.shared).ready().folder)


def _show_new(context: Context, key: ApiKey, text: str) -> None:
    show_rows(["id", "scope", "key"], [(key.id, key.scope, text)], context.output)
    note("The key is not stored and cannot be shown again.")
