"""A PostgreSQL that is read as it was at one moment.

Everything that is read of a table is read in one snapshot of the database, which other connections (Spark's) join by
its name. So the rows, the keys and the mark up to which they were read belong together, whatever is written meanwhile.
"""

from lakehouse.pipelines.postgres.address import Address
from lakehouse.pipelines.postgres.changes import Wanted, wanted
from lakehouse.pipelines.postgres.relation import Column, Relation, identifier
from lakehouse.pipelines.postgres.settings import SETTINGS, PostgresSettings
from lakehouse.pipelines.postgres.view import DIGITS, View, view

__all__ = [
    "DIGITS",
    "SETTINGS",
    "Address",
    "Column",
    "PostgresSettings",
    "Relation",
    "View",
    "Wanted",
    "identifier",
    "view",
    "wanted",
]
