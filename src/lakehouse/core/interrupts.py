"""Ctrl-C as KeyboardInterrupt that is neither lost nor raised where Python cannot bear it.

Python raises it between any two instructions of the main thread. Within the import machinery it leaves the import lock
locked, and every other thread that imports something waits for ever; within a destructor or the callback of a weak
reference it is printed and forgotten. In both cases the signal is sent again a moment later.

Nothing is imported here that a starting Python has not loaded, except `signal`.
"""

from __future__ import annotations

import _thread
import os
import signal
import sys
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

_PAUSE_S = 0.01
#: How often a signal is put off: an import that takes longer waits for something that never comes.
_MOST_PAUSES = 500


def raise_interrupts() -> None:
    """Raise KeyboardInterrupt at SIGINT from now on. A process that ignores it, as one behind `nohup` does, goes on ignoring it."""
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        handle_interrupts(_raise)


def _raise() -> None:
    raise KeyboardInterrupt


def handle_interrupts(action: Callable[[], None]) -> None:
    """Run an action, which may raise KeyboardInterrupt, at SIGINT from now on."""
    pauses = 0

    def handle(number: int, frame: FrameType | None) -> None:
        nonlocal pauses
        if _is_importing(frame) and pauses < _MOST_PAUSES:
            pauses += 1
            _send_again()
            return
        pauses = 0
        action()

    def report(unraisable: Any) -> None:
        if issubclass(unraisable.exc_type, KeyboardInterrupt):
            _send_again()
        else:
            sys.__unraisablehook__(unraisable)

    signal.signal(signal.SIGINT, handle)
    sys.unraisablehook = report


def _is_importing(frame: FrameType | None) -> bool:
    return frame is not None and frame.f_code.co_filename.startswith("<frozen importlib.")


def _send_again() -> None:
    process = os.getpid()

    def send() -> None:
        time.sleep(_PAUSE_S)
        os.kill(process, signal.SIGINT)

    _thread.start_new_thread(send, ())
