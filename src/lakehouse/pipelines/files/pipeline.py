"""files: leads from CSV files in a watched folder, merged by key, each file once."""

from __future__ import annotations

from lakehouse.pipelines.model import FilesTable, Pipeline

files = Pipeline(
    name="files",
    description="Leads from a watched folder: each new file is merged by key, once.",
    settings={"path": "the folder (or pattern, or s3:// address) of the files"},
    tables=(
        FilesTable(
            "crm.leads",
            folder="path",
            options={"key": ("id",)},
            description="Leads, one row per id; the last file with the id wins.",
        ),
    ),
)
