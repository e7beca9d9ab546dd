"""What can be wrong with a user's file, one error each.

SourceError
├── NoSuchFileError       EmptyGlobError, NoDataFilesError
├── UnreadableFileError
├── EmptyFileError
├── BinaryFileError       NulBytesError
├── DamagedFileError      (cut-off gzip, broken Parquet)
├── JsonArrayError
└── BadRowError           (only where bad rows are not to be set aside)
"""

from __future__ import annotations

from lakehouse.core.errors import LakeError


class SourceError(LakeError):
    """A file that was given to be read cannot be read."""

    code = "bad_source"
    is_user_error = True
    file: str = ""
    line: int | None = None

    def __init__(self, message: str, hint: str = "", file: str = "", line: int | None = None) -> None:
        self.file, self.line = file, line
        super().__init__(message, hint)

    def as_dict(self) -> dict[str, object]:
        place = {key: value for key, value in (("file", self.file), ("line", self.line)) if value}
        return {**super().as_dict(), **place}


class NoSuchFileError(SourceError):
    """There is no file or folder of that name."""

    code = "no_such_file"


class EmptyGlobError(NoSuchFileError):
    """A pattern matches no file."""

    code = "empty_glob"


class NoDataFilesError(NoSuchFileError):
    """A folder holds no file that could be data."""

    code = "no_data_files"


class UnreadableFileError(SourceError):
    """The file is there, but we may not read it, or it is not a plain file."""

    code = "unreadable_file"


class EmptyFileError(SourceError):
    """The file has no bytes, or nothing but blank lines."""

    code = "empty_file"


class BinaryFileError(SourceError):
    """The file is no text and no Parquet."""

    code = "binary_file"


class NulBytesError(BinaryFileError):
    """A text file holds NUL bytes, which means that it was damaged or is not what it seems."""

    code = "nul_bytes"


class DamagedFileError(SourceError):
    """The file starts like what it should be, and then breaks off or makes no sense."""

    code = "damaged_file"


class JsonArrayError(SourceError):
    """The file is one big JSON array or value instead of one object per line."""

    code = "json_array"


class BadRowError(SourceError):
    """A row cannot be read, and bad rows were not to be set aside."""

    code = "bad_row"
