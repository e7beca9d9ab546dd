"""The before_publish hook: a command gets the diff as JSON, a function as a dict, and either can refuse the publish."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

from lakehouse.core.errors import BadSettingError, PublishRefusedError

#: A hook that takes longer than this refuses.
TIMEOUT_S = 600
_FUNCTION = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")
_MAX_REASON_CHARS = 2000


def run_hook(hook: Sequence[str], diff: Mapping[str, Any]) -> None:
    """Run a hook; raises PublishRefusedError with its reason if it refuses.

    Args:
        hook: a command with its arguments, or one `module:function`; empty: no hook.
    """
    if not hook:
        return
    reason = _function(hook[0], diff) if len(hook) == 1 and _FUNCTION.fullmatch(hook[0]) else _command(hook, diff)
    if reason is not None:
        raise PublishRefusedError(
            f"hooks.before_publish ({hook[0]}) refused: {reason[:_MAX_REASON_CHARS] or 'it gave no reason'}",
            "Nothing was published. The branch is kept: lake branch list",
        )


def _command(hook: Sequence[str], diff: Mapping[str, Any]) -> str | None:
    try:
        done = subprocess.run(
            list(hook), input=json.dumps(diff), capture_output=True, text=True, timeout=TIMEOUT_S, check=False
        )
    except OSError as exc:
        raise BadSettingError(
            f"hooks.before_publish cannot be run: {hook[0]}: {exc.strerror}.", "Name a program that is on the PATH."
        ) from exc
    except subprocess.TimeoutExpired:
        return f"it did not answer within {TIMEOUT_S} s"
    if done.returncode == 0:
        return None
    return done.stderr.strip() or done.stdout.strip() or f"exit code {done.returncode}"


def _function(name: str, diff: Mapping[str, Any]) -> str | None:
    module, _, function = name.partition(":")
    try:
        hook = getattr(import_module(module), function)
    except (ImportError, AttributeError) as exc:
        raise BadSettingError(
            f"hooks.before_publish names {name}, which cannot be imported: {exc}.", "Write it as module:function."
        ) from exc
    try:
        answer = hook(dict(diff))
    except Exception as exc:  # noqa: BLE001 - any error of the hook is a refusal
        return f"{type(exc).__name__}: {exc}"
    return None if answer in (None, 0, "", True) else str(answer)
