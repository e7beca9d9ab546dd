"""The `lake` command line. `lake --help` imports only this module and the list of commands."""

from __future__ import annotations

import sys

from lakehouse.cli.commands import help_text


def main() -> None:
    """Run `lake` with the arguments of this process."""
    arguments = sys.argv[1:]
    text = None if _is_completing() else _help_or_version(arguments)
    if text is not None:
        _write(text)
        return
    is_local = not {"--help", "spark", "--url"} & set(arguments) and not _uses_service()
    if arguments[:1] in (["sql"], ["shell"]) and is_local:
        # Importing DuckDB takes longest in a cold query, so it starts before the command line is parsed.
        from lakehouse.engines.duckdb import preload

        preload()
    from lakehouse.cli.app import run

    sys.exit(run(arguments))


def _help_or_version(arguments: list[str]) -> str | None:
    if arguments in ([], ["--help"], ["-h"]):
        return help_text()
    if arguments == ["--version"]:
        from lakehouse import __version__

        return f"lakehouse {__version__}\n"
    return None


def _write(text: str) -> None:
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        import os

        # The reader has closed the pipe; without this, Python reports the error once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _uses_service() -> bool:
    import os

    return bool(os.environ.get("LAKE_URL"))


def _is_completing() -> bool:
    import os

    return "_LAKE_COMPLETE" in os.environ
