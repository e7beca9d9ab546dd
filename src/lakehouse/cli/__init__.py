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
    import atexit

    ended: list[int] = []
    try:
        _replace_closed_streams()
        from lakehouse.core.interrupts import raise_interrupts

        raise_interrupts()
        # The first to be registered is the last to run, after Python has waited for threads.
        atexit.register(_leave, ended)
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
    ended.append(code)
    sys.exit(code)


def _replace_closed_streams() -> None:
    """Open /dev/null for each standard stream that this process was started without.

    Otherwise the next file that is opened gets its number, and what a library prints is written into that file. What is
    written to standard output is an error, since it reaches nobody; what is written to stderr is not.
    """
    import os

    for name, mode in (("stdin", os.O_RDONLY), ("stdout", os.O_RDONLY), ("stderr", os.O_WRONLY)):
        if getattr(sys, name) is None:
            number = os.open(os.devnull, mode)  # the lowest free number: that of the stream
            os.set_inheritable(number, True)
            setattr(sys, name, os.fdopen(number, "r" if name == "stdin" else "w"))


def _leave(ended: list[int]) -> None:
    """Spare Python from freeing all its memory before the process ends, a tenth of a cold query, if the command has ended as it should."""
    if not ended:
        return
    import os

    try:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
    except (OSError, ValueError):
        return  # Python reports what cannot be written
    os._exit(ended[0])


def _is_interrupt(exc: BaseException) -> bool:
    if isinstance(exc, KeyboardInterrupt):
        return True
    from lakehouse.core.cancel import is_interrupt

    return is_interrupt(exc)


def _run(arguments: list[str], is_forked: bool) -> int:
    text = None if _is_completing() else _help_or_version(arguments)
    if text is not None:
        return _write(text)
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


def _write(text: str) -> int:
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError as exc:
        from lakehouse.cli.app import Context, report_broken_output

        return report_broken_output(exc, Context())
    return 0


def _uses_service() -> bool:
    import os

    return bool(os.environ.get("LAKE_URL"))


def _is_completing() -> bool:
    import os

    return "_LAKE_COMPLETE" in os.environ
