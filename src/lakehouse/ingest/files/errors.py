"""Errors of source files.

SourceError
├── NoSuchFileError       EmptyGlobError, NoDataFilesError
├── UnreadableFileError
├── EmptyFileError
├── BinaryFileError       NulBytesError
├── DamagedFileError      (truncated gzip, invalid Parquet)
├── JsonArrayError
└── BadRowError           (only with on_bad="fail")
"""

from __future__ import annotations

from lakehouse.core.errors import LakeError
from lakehouse.core.masking import mask


class SourceError(LakeError):
    """A source file cannot be read."""

    code = "bad_source"
    is_user_error = True
    file: str = ""
    line: int | None = None

    def __init__(self, message: str, hint: str = "", file: str = "", line: int | None = None) -> None:
        self.file, self.line = mask(file), line
        super().__init__(message, hint)

    def as_dict(self) -> dict[str, object]:
        location = {key: value for key, value in (("file", self.file), ("line", self.line)) if value}
        return {**super().as_dict(), **location}


class NoSuchFileError(SourceError):
    """There is no file or folder with this name."""

    code = "no_such_file"


class EmptyGlobError(NoSuchFileError):
    """A pattern matches no file."""

    code = "empty_glob"


class NoDataFilesError(NoSuchFileError):
    """A folder has no data file."""

    code = "no_data_files"


class UnreadableFileError(SourceError):
    """The file exists, but reading is not permitted or it is not a regular file."""

    code = "unreadable_file"


class EmptyFileError(SourceError):
    """The file has no bytes or only blank lines."""

    code = "empty_file"


class BinaryFileError(SourceError):
    """The file is neither text nor Parquet."""

    code = "binary_file"


class NulBytesError(BinaryFileError):
    """A text file contains NUL bytes, so it is damaged or not text."""

    code = "nul_bytes"


class DamagedFileError(SourceError):
    """The file is truncated or its content is invalid."""

    code = "damaged_file"


class JsonArrayError(SourceError):
    """The file is one JSON array or value instead of one object per line."""

    code = "json_array"


class BadRowError(SourceError):
    """A row is invalid and the contract does not allow to quarantine it."""

    code = "bad_row"
