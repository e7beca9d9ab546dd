"""The branches, tags, log and publisher of one lake."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from lakehouse.versioning.branches import Branches
from lakehouse.versioning.log import Log
from lakehouse.versioning.publish import Publisher

B = TypeVar("B", bound=Branches)


@dataclass(frozen=True)
class Refs(Generic[B]):
    """The branches, tags and log of a lake."""

    branches: B
    log: Log
    publisher: Publisher
    author: str = ""
    """Commit author (default: OS user)."""
