"""A whole data lakehouse: `open_lake()` opens one, `connect(url)` one behind a service, `LakeError` is all that they raise."""

from __future__ import annotations

from lakehouse.core import __version__ as __version__

__all__ = ["LakeError", "Settings", "connect", "open_lake"]

# Not typing's own: its import takes most of the time until `lake` can answer Ctrl-C.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from lakehouse.client import connect
    from lakehouse.config.settings import Settings
    from lakehouse.core.errors import LakeError
    from lakehouse.lake.assemble import open_lake

_WHERE = {
    "LakeError": "lakehouse.core.errors",
    "Settings": "lakehouse.config.settings",
    "connect": "lakehouse.client",
    "open_lake": "lakehouse.lake.assemble",
}


def __getattr__(name: str) -> Any:
    # Imported when first used, so that `lake --help` does not pay for what it does not need.
    if name not in _WHERE:
        raise AttributeError(f"module 'lakehouse' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_WHERE[name]), name)


def __dir__() -> list[str]:
    # `help(lakehouse)` and completion list the names before they are imported.
    return sorted({*globals(), *__all__})
