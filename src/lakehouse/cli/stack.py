"""`lake stack`: what is done with the servers besides starting them here."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from lakehouse.cli.app import Context, command
from lakehouse.cli.process import services_argument
from lakehouse.cli.show import byte_progress, note, show_rows


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def stack() -> None:
    """List the servers, fetch them beforehand, render them for Docker, run one in the foreground.

    \b
    Example:
      lake stack list
      lake stack render
    """


@command("lake stack list")
def list_(context: Context) -> None:
    """List the servers: version, what they need, where they listen, licence."""
    from lakehouse.stack.registry import services

    settings = context.settings()
    rows = [
        (
            each.name,
            each.version,
            ", ".join(each.needs),
            next((port.address(settings) for port in each.ports if port.url), ""),
            "natively, compose" if each.process else "compose",
            each.licence,
            each.about,
        )
        for each in services()
    ]
    show_rows(["service", "version", "needs", "url", "runs", "licence", "about"], rows, context.output)


@command("lake stack fetch\nlake stack fetch --only hive connect")
@services_argument
@click.option("--only", is_flag=True, help="Not what they need.")
def fetch(context: Context, services: tuple[str, ...], only: bool) -> None:
    """Fetch what servers run on into the cache now, so that `lake up` need not: all of it, unless some are named."""
    from lakehouse.stack import native

    native.provide(context.settings(), services or ("all",), only=only, fetching=byte_progress, tell=note)
    note("All is there.")


@command("lake stack render\nlake stack render --into /srv/lake\nlake stack render --check")
@click.option(
    "--into",
    "folder",
    default="deploy",
    show_default=True,
    type=click.Path(path_type=Path, file_okay=False),
    help="The folder to write into.",
)
@click.option("--check", is_flag=True, help="Write nothing; fail if a file is not as it would be written.")
def render(context: Context, folder: Path, check: bool) -> None:
    """Write compose.yaml and the files it mounts, and a .env with passwords made up for it, if there is none."""
    from lakehouse.stack.compose import stale, write

    if check:
        found = stale(folder)
        for name in found:
            note(f"stale    {folder / name}")
        sys.exit(1 if found else 0)
    for file, kept in write(folder):
        note(f"{'kept    ' if kept else 'written '} {file}")
    note(f"Next: docker compose --project-directory {folder} --profile all up --wait")


@command("lake stack serve connect")
@click.argument("service")
def serve(context: Context, service: str) -> None:
    """Run one server in the foreground, with what the settings say. This is what our container image does."""
    from lakehouse.stack import native

    sys.exit(native.serve(context.settings(), service, fetching=byte_progress))


stack.add_command(list_)
stack.add_command(fetch)
stack.add_command(render)
stack.add_command(serve)
