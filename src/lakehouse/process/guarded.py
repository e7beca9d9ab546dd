"""A command that ends with its parent process, and that does not run as root if it refuses to.

`guarded` wraps a command in this file, run as a script: it prepares itself and then becomes the command. So it imports
the standard library alone.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Sequence

_PR_SET_PDEATHSIG = 1
_CLONE_NEWUSER = 0x10000000
_UNPRIVILEGED_UID = 1000


def guarded(argv: Sequence[str], stop_signal: int = signal.SIGTERM, not_root: bool = False) -> list[str]:
    """The command line that runs a command until this process ends.

    Args:
        stop_signal: what the system sends to it then.
        not_root: map root to another user, for servers that refuse to run as root.
    """
    return [sys.executable, "-I", __file__, str(os.getpid()), str(int(stop_signal)), str(int(not_root)), *argv]


def main() -> None:
    """Prepare this process, then become the command."""
    parent, stop_signal, not_root, *argv = sys.argv[1:]
    if sys.platform == "linux":
        if not_root == "1" and os.geteuid() == 0:
            _leave_root()
        # After the change of user, which would undo it.
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(stop_signal), 0, 0, 0)
        if os.getppid() != int(parent):
            sys.exit("The parent process has ended.")
    os.execv(argv[0], argv)


def _leave_root() -> None:
    """Map root to another user in a user namespace of this process; outside it the files still belong to root."""
    user, group = os.geteuid(), os.getegid()
    if ctypes.CDLL(None, use_errno=True).unshare(_CLONE_NEWUSER) != 0:
        sys.exit(
            "This server refuses to run as root, and the system gives no user namespace. Run `lake` as another user."
        )
    for file, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{_UNPRIVILEGED_UID} {user} 1"),
        ("gid_map", f"{_UNPRIVILEGED_UID} {group} 1"),
    ):
        with open(f"/proc/self/{file}", "w") as out:
            out.write(text)


if __name__ == "__main__":
    main()
