"""What stands between the supervisor and a server for a moment: it sees to it that the server ends with the supervisor,
and is not root where it refuses to be, then becomes the server. Run as a script, with the standard library alone.
"""

from __future__ import annotations

import ctypes
import os
import sys

_PR_SET_PDEATHSIG = 1
_CLONE_NEWUSER = 0x10000000
_SOME_USER = 1000


def main() -> None:
    parent, signal, not_root, *argv = sys.argv[1:]
    if sys.platform == "linux":
        if not_root == "1" and os.geteuid() == 0:
            _stop_being_root()
        # After the change of user, which would undo it.
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal), 0, 0, 0)
        if os.getppid() != int(parent):
            sys.exit("The supervisor has ended.")
    os.execv(argv[0], argv)


def _stop_being_root() -> None:
    """Root is another user in a namespace of the process's own; to the rest of the machine the files stay root's."""
    user, group = os.geteuid(), os.getegid()
    if ctypes.CDLL(None, use_errno=True).unshare(_CLONE_NEWUSER) != 0:
        sys.exit(
            "This server refuses to run as root, and the system gives no user namespace. Run `lake` as another user."
        )
    for file, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{_SOME_USER} {user} 1"),
        ("gid_map", f"{_SOME_USER} {group} 1"),
    ):
        with open(f"/proc/self/{file}", "w") as out:
            out.write(text)


if __name__ == "__main__":
    main()
