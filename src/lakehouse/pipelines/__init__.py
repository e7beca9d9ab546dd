"""The pipelines, and what one is written with: `from lakehouse.pipelines import Pipeline, Table, Source, Days`."""

from lakehouse.pipelines.model import Batch, FilesTable, Pipeline, Reading, Source, Table
from lakehouse.pipelines.partitions import Days, Months

__all__ = ["Batch", "Days", "FilesTable", "Months", "Pipeline", "Reading", "Source", "Table"]
