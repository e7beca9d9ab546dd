"""Read PostgreSQL tables in one snapshot of the database.

Other connections (Spark's) join the exported snapshot by its name. The rows, the keys and the watermark up to which
they were read belong together, whatever is written meanwhile.
"""

from lakehouse.pipelines.postgres.changes import ReadPlan, fingerprint, plan_read
from lakehouse.pipelines.postgres.relation import Column, Relation, arrow_rows, identifier
from lakehouse.pipelines.postgres.settings import SETTINGS, Address, PostgresSettings
from lakehouse.pipelines.postgres.snapshot import NUMERIC_HINT, DatabaseSnapshot, open_snapshot

__all__ = [
    "NUMERIC_HINT",
    "SETTINGS",
    "Address",
    "Column",
    "DatabaseSnapshot",
    "PostgresSettings",
    "ReadPlan",
    "Relation",
    "arrow_rows",
    "fingerprint",
    "identifier",
    "open_snapshot",
    "plan_read",
]
