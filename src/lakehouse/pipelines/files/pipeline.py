"""files: leads that arrive as CSV files in a watched folder, merged by key, each file once."""

from __future__ import annotations

from lakehouse.pipelines.model import FilesTable, Pipeline

files = Pipeline(
    name="files",
    description="Leads from a watched folder: drop a file in, run, and it is merged once.",
    settings={"path": "the folder (or pattern, or s3:// address) in which files arrive"},
    tables=(
        FilesTable(
            "crm.leads",
            folder="path",
            options={"key": ("id",)},
            description="Leads, one row per id; the last file that names one wins.",
        ),
    ),
)
