"""Read source files without Spark: find them, plan how to read them, stage them as typed Parquet.

files = discover(["leads.csv"])
plan = plan_files(files)
staged = stage_files(plan, into=Path("..."))     # staged.plan has the confirmed types
"""

from lakehouse.ingest.files.discover import SourceFile, content_hash, discover, fetch_remote
from lakehouse.ingest.files.model import (
    LINE_COLUMN,
    Dialect,
    FilePlan,
    PlannedColumn,
    ReadPlan,
    RecordedColumn,
    Reject,
    StagedFile,
    StagedFiles,
    StageOptions,
)
from lakehouse.ingest.files.names import clean_names
from lakehouse.ingest.files.nested import fields_of, is_nested
from lakehouse.ingest.files.plan import plan_files
from lakehouse.ingest.files.stage import read_rejects, stage_files

__all__ = [
    "LINE_COLUMN",
    "Dialect",
    "FilePlan",
    "PlannedColumn",
    "ReadPlan",
    "RecordedColumn",
    "Reject",
    "SourceFile",
    "StageOptions",
    "StagedFile",
    "StagedFiles",
    "clean_names",
    "content_hash",
    "discover",
    "fetch_remote",
    "fields_of",
    "is_nested",
    "plan_files",
    "read_rejects",
    "stage_files",
]
