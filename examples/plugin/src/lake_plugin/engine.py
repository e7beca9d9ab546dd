"""`lake sql --engine polars`: runs reads in Polars."""

from __future__ import annotations

import os
from dataclasses import dataclass

import polars

from lakehouse.core.engine import EngineCapabilities, EngineContext, Query
from lakehouse.core.errors import NotSupportedError, QueryRejectedError
from lakehouse.core.result import ArrowRows, Explain, Result
from lakehouse.core.setting import read_options, setting
from lakehouse.core.tables import Column, Scan


@dataclass(frozen=True)
class PolarsSettings:
    """`[engines.polars]` in lake.toml, `LAKE_ENGINES__POLARS__*` in the environment."""

    collect: str = setting(
        "auto", "How Polars computes: auto, in-memory or streaming.", choices=("auto", "in-memory", "streaming")
    )


def open_engine(context: EngineContext) -> PolarsEngine:
    """Open Polars with its settings."""
    # Polars has a faster planner in another package, and warns at each scan without it.
    os.environ.setdefault("POLARS_ICEBERG_PLANNER", "pyiceberg")
    return PolarsEngine(read_options(PolarsSettings, context.options, "engines.polars"))


class PolarsEngine:
    """Reads each table from the scan that the router resolved, so it needs no catalog."""

    name = "polars"
    capabilities = EngineCapabilities(scans=True)

    def __init__(self, settings: PolarsSettings) -> None:
        self._settings = settings

    def prepare(self) -> None:
        """Polars has nothing to load in advance."""

    def run(self, query: Query) -> Result:
        if query.request.parameters:
            raise NotSupportedError("Parameters are not bound in Polars.", "Use the engine duckdb or spark.")
        context, sql = polars.SQLContext(), query.statement.text
        # Last position first, so that earlier positions stay valid.
        for number, use in enumerate(sorted(query.scans, key=lambda use: use.start, reverse=True)):
            context.register(f"t{number}", _frame(query.scans[use]))
            alias = "" if use.alias else f" AS {use.name.table}"
            sql = f"{sql[: use.start]}t{number}{alias}{sql[use.end :]}"
        try:
            table = context.execute(sql).collect(engine=self._settings.collect).to_arrow()
        except polars.exceptions.PolarsError as exc:
            raise QueryRejectedError(f"Polars: {exc}", "Use the engine duckdb or spark.", query.statement.text) from exc
        columns = tuple(Column(field.name, str(field.type)) for field in table.schema)
        return Result(columns, ArrowRows(table.slice(0, query.request.limit)), Explain(self.name, query.reason))


def _frame(scan: Scan) -> polars.LazyFrame:
    if scan.metadata:
        snapshot = int(scan.snapshot_id) if scan.snapshot_id else None
        return polars.scan_iceberg(scan.metadata, snapshot_id=snapshot)
    names = [column.name for column in scan.columns]
    return polars.scan_parquet(list(scan.files), missing_columns="insert", extra_columns="ignore").select(names)
