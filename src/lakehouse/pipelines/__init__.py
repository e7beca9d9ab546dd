"""The declaration of pipelines: `from lakehouse.pipelines import Pipeline, Table, Source, Days`."""

from lakehouse.pipelines.model import Batch, FilesTable, LightContext, Pipeline, Source, SourceContext, Table
from lakehouse.pipelines.partitions import Days, Hours, Keys, Months, Weeks

__all__ = [
    "Batch",
    "Days",
    "FilesTable",
    "Hours",
    "Keys",
    "LightContext",
    "Months",
    "Pipeline",
    "Source",
    "SourceContext",
    "Table",
    "Weeks",
]
