"""The pointers of a catalog in one JSON file, which is read whole and replaced whole under a lock."""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lakehouse.core.errors import CatalogBusyError, CatalogError

_EMPTY: dict[str, Any] = {"namespaces": {}, "tables": {}, "dropped": []}
_POLL_S = 0.01


@dataclass(frozen=True)
class PointerFile:
    """`namespaces`: their properties by name. `tables`: pointers by name. `dropped`: what can be restored, oldest first."""

    path: Path
    wait_s: float
    """Seconds to wait for another writer."""

    def read(self) -> dict[str, Any]:
        """Return the content of one moment: a writer replaces the file, and never changes it."""
        try:
            content: dict[str, Any] = json.loads(self.path.read_text())
        except FileNotFoundError:
            return deepcopy(_EMPTY)
        except (OSError, ValueError) as exc:
            raise CatalogError(f"{self.path} cannot be read: {exc}.", "Restore it from a backup.") from exc
        return content

    @contextmanager
    def changing(self) -> Iterator[dict[str, Any]]:
        """Yield the content for the block to change; nobody else changes it meanwhile, and an error changes nothing."""
        with self._locked():
            content = self.read()
            before = deepcopy(content)
            yield content
            if content != before:
                self._replace(json.dumps(content, indent=1, sort_keys=True))

    def _replace(self, text: str) -> None:
        new = self.path.with_suffix(".new")
        with new.open("w") as out:
            out.write(text)
            out.flush()
            os.fsync(out.fileno())
        new.replace(self.path)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        deadline = time.monotonic() + self.wait_s
        with self.path.with_suffix(".lock").open("a") as lock:
            while True:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError as exc:
                    if time.monotonic() > deadline:
                        raise CatalogBusyError(
                            f"Another process has been writing to {self.path} for {self.wait_s:g} s.",
                            "Try again, or raise catalog.properties.wait_s.",
                        ) from exc
                    time.sleep(_POLL_S)
                else:
                    break
            yield
