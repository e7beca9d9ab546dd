"""`lake stack`: list, download, render and serve the servers."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from lakehouse.cli.app import Context, command, group
from lakehouse.cli.process import services_argument
from lakehouse.cli.show import note, show_download, show_rows


@group("lake stack list\nlake stack fetch trino nessie\nlake stack render")
def stack() -> None:
    """List and download the servers, render them for Docker, run one in the foreground.

    `lake up` and `lake down` start and stop them.
    """


@command("lake stack list\nlake stack list -o json", stack)
def list_(context: Context) -> None:
    """List servers: version, dependencies, address, licence."""
    from lakehouse.stack.services import services

    settings = context.settings()
    rows = [
        (
            service.name,
            service.version,
            ", ".join(service.needs),
            next((port.address(settings) for port in service.ports if port.url), ""),
            "natively, compose" if service.process else "compose",
            service.licence,
            service.about,
        )
        for service in services()
    ]
    show_rows(["service", "version", "needs", "url", "runs", "licence", "about"], rows, context.output)


@command("lake stack fetch\nlake stack fetch --only hive connect", stack)
@services_argument
@click.option("--only", is_flag=True, help="Download only these services, without their dependencies.")
def fetch(context: Context, services: tuple[str, ...], only: bool) -> None:
    """Download the programs of the servers into the cache.

    Without a SERVICE: of all servers. `lake up` downloads what is missing, too.
    """
    from lakehouse.stack import native

    native.install(context.settings(), services or ("all",), only=only, download=show_download, progress=note)
    note("Everything is downloaded.")


@command("lake stack render\nlake stack render --into /srv/lake\nlake stack render --check", stack)
@click.option(
    "--into",
    "folder",
    default="deploy",
    metavar="DIR",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder to write to (default: deploy).",
)
@click.option("--check", is_flag=True, help="Write nothing; exit with 1 if a file is out of date.")
def render(context: Context, folder: Path, check: bool) -> None:
    """Write compose.yaml and the files it mounts.

    If there is no .env, one with generated passwords is written.
    """
    from lakehouse.stack.compose import stale, write

    if check:
        stale_files = stale(folder)
        for name in stale_files:
            note(f"stale    {folder / name}")
        sys.exit(1 if stale_files else 0)
    for file, kept in write(folder):
        note(f"{'kept    ' if kept else 'written '} {file}")
    note(f"Next: docker compose --project-directory {folder} --profile all up --wait")


@command("lake stack rotate-token", stack)
def rotate_token(context: Context) -> None:
    """Replace the tokens of the REST catalog.

    Both are replaced: the owner's, and the one that only reads. The servers that use them are restarted.

    Clients need the new ones, which `lake connect` prints.
    """
    from lakehouse.config.secrets import rotate_secret
    from lakehouse.stack import native

    settings = context.settings()
    for name in ("rest_token", "rest_read_token"):
        rotate_secret(settings, name)
    users = ("rest", "trino", "superset")
    running = [status.service for status in native.status(settings) if status.service in users]
    if running:
        native.up(settings, running, progress=note)
    note("The REST catalog has new tokens.")


@command("lake stack serve connect", stack)
@click.argument("service")
def serve(context: Context, service: str) -> None:
    """Run one server in the foreground, as the image does."""
    from lakehouse.stack import native

    sys.exit(native.serve(context.settings(), service, download=show_download))
