"""The `lake` command line. `lake --help` imports only this module, the handler of Ctrl-C and the list of commands.

Nothing is imported before `main` runs, which is where Ctrl-C is answered: imports take most of a short command's time.
"""

from __future__ import annotations

import sys


def main(is_forked: bool = False) -> None:
    """Run `lake` with the arguments of this process, and exit.

    Args:
        is_forked: this process is a child of one that has imported what the command needs (`cli/loaded.py`).
    """
    try:
        from lakehouse.core.interrupts import raise_interrupts

        raise_interrupts()
        code = _run(sys.argv[1:], is_forked)
    except BaseException as exc:
        if not _is_interrupt(exc):
            raise
        sys.stderr.write("\nStopped.\n")
        code = 130
    import os
    import signal

    # From now on Ctrl-C only ends the process sooner: Python would report it as an error while it waits for threads.
    signal.signal(signal.SIGINT, lambda number, frame: os._exit(code))
    sys.exit(code)


def _is_interrupt(exc: BaseException) -> bool:
    if isinstance(exc, KeyboardInterrupt):
        return True
    from lakehouse.core.cancel import is_interrupt

    return is_interrupt(exc)


def _run(arguments: list[str], is_forked: bool) -> int:
    text = None if _is_completing() else _help_or_version(arguments)
    if text is not None:
        _write(text)
        return 0
    is_local = not {"--help", "spark", "--url"} & set(arguments) and not _uses_service()
    if arguments[:1] in (["sql"], ["shell"]) and is_local:
        # Importing DuckDB takes longest in a cold query, so it starts before the command line is parsed.
        from lakehouse.engines.duckdb import preload

        preload()
    from lakehouse.cli.app import run

    return run(arguments, may_hand_over=not is_forked)


def _help_or_version(arguments: list[str]) -> str | None:
    if arguments in ([], ["--help"], ["-h"]):
        from lakehouse.cli.commands import help_text

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
