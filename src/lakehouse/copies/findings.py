"""What a check of a lake finds."""

from __future__ import annotations

from collections.abc import Sequence

from lakehouse.core.dataclass import dataclass

#: A file that should be there.
MISSING = "missing"
#: A file that has another length than the metadata states.
TRUNCATED = "truncated"
#: A file or a row whose content is not what it should be.
CORRUPT = "corrupt"
#: A file that nothing refers to.
UNREACHABLE = "unreachable"
#: A file or a pointer that belongs elsewhere.
MISPLACED = "misplaced"
#: A branch, tag, log entry or run that refers to something that does not exist.
DANGLING = "dangling"
#: A table that an engine cannot read.
UNREADABLE = "unreadable"
#: A table or snapshot that is not as in a backup.
DIFFERENT = "different"


@dataclass(frozen=True)
class Finding:
    """One problem."""

    kind: str
    where: str
    """The file, row or table."""
    detail: str
    table: str = ""
    ref: str = ""
    """What refers to it: main, `branch NAME`, `tag NAME`, `log NUMBER`, `run ID`, dropped."""
    is_damage: bool = True
    """False: worth knowing, but nothing is lost."""


@dataclass(frozen=True)
class VerifyReport:
    """The result of a check."""

    findings: Sequence[Finding]
    tables: int
    snapshots: int
    files: int
    bytes: int
    seconds: float

    @property
    def damage(self) -> list[Finding]:
        """The findings that mean a loss."""
        return [finding for finding in self.findings if finding.is_damage]
