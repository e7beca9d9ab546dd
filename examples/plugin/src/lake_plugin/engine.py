"""`lake sql --engine polars`: runs reads in Polars."""

from __future__ import annotations

import polars

from lakehouse.core.engine import EngineCapabilities, Query
from lakehouse.core.result import ArrowRows, Explain, Result
from lakehouse.core.tables import Column, Scan


class PolarsEngine:
    """Reads each table from the scan that the router resolved, so it needs no catalog."""

    name = "polars"
    capabilities = EngineCapabilities(scans=True)

    def prepare(self) -> None:
        """Polars has nothing to load in advance."""

    def run(self, query: Query) -> Result:
        context, sql = polars.SQLContext(), query.statement.text
        # Last position first, so that earlier positions stay valid.
        for number, use in enumerate(sorted(query.scans, key=lambda each: each.start, reverse=True)):
            context.register(f"t{number}", _frame(query.scans[use]))
            alias = "" if use.alias else f" AS {use.name.table}"
            sql = f"{sql[: use.start]}t{number}{alias}{sql[use.end :]}"
        table = context.execute(sql, eager=True).to_arrow()
        columns = tuple(Column(field.name, str(field.type)) for field in table.schema)
        return Result(columns, ArrowRows(table.slice(0, query.request.limit)), Explain(self.name, query.reason))


def _frame(scan: Scan) -> polars.LazyFrame:
    if scan.metadata:
        snapshot = int(scan.snapshot_id) if scan.snapshot_id else None
        return polars.scan_iceberg(scan.metadata, snapshot_id=snapshot)
    return polars.scan_parquet(list(scan.files))
