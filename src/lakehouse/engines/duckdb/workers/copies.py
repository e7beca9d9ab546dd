"""Small tables in the memory of a query process.

DuckDB reads the metadata of an Iceberg table again for every statement, which takes most of the time of a small query. A scan never
changes, so its rows may be copied when they are read first. The views of 64 combinations of tables are kept, the copies with them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakehouse.core.dataclass import dataclass
from lakehouse.core.names import TableName
from lakehouse.core.tables import Scan
from lakehouse.engines.duckdb import create_copy, create_view

if TYPE_CHECKING:
    import duckdb

#: The largest table that is copied. To copy it takes as long as to read it once.
_MAX_BYTES, _MAX_ROWS = 1 << 20, 100_000
_USED = "SELECT sum(memory_usage_bytes) FROM duckdb_memory() WHERE tag = 'IN_MEMORY_TABLE'"


@dataclass(frozen=True)
class SmallTables:
    """Creates the view of a table, or a copy if the table is small."""

    memory: int
    """Bytes that all copies may take: what is small in a file may be large in memory."""

    def create(self, cursor: duckdb.DuckDBPyConnection, name: TableName | str, scan: Scan) -> None:
        """Create what a table name in a query refers to."""
        import duckdb

        if not self._is_small(cursor, scan):
            create_view(cursor, name, scan)
            return
        try:
            create_copy(cursor, name, scan)
        except duckdb.InterruptException:
            raise
        except duckdb.Error:  # of a column that the statement may not read
            create_view(cursor, name, scan)

    def _is_small(self, cursor: duckdb.DuckDBPyConnection, scan: Scan) -> bool:
        if not scan.metadata or scan.total_bytes is None or scan.total_rows is None:
            return False
        if scan.total_bytes > _MAX_BYTES or scan.total_rows > _MAX_ROWS:
            return False
        (used,) = cursor.execute(_USED).fetchone() or (0,)
        return int(used) < self.memory
