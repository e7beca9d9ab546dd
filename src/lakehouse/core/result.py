"""The result of a statement: columns and rows of any engine, converted to Arrow on demand."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any, Protocol

from lakehouse.core.dataclass import dataclass
from lakehouse.core.tables import Column

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

Row = tuple[Any, ...]


class Rows(Protocol):
    """The rows of a result, fetched lazily."""

    def fetch(self) -> list[Row]: ...
    def arrow(self) -> pyarrow.Table: ...


@dataclass(frozen=True)
class Explain:
    """Which engine ran a statement, why, and how much of the tables it read."""

    engine: str
    reason: str
    files_read: int | None = None
    files_total: int | None = None
    bytes_read: int | None = None
    bytes_total: int | None = None
    plan: str = ""


@dataclass(frozen=True)
class RowChanges:
    """How many rows a statement changed. None where that is not known for certain."""

    total: int | None = None
    inserted: int | None = None
    updated: int | None = None
    deleted: int | None = None

    def as_dict(self) -> dict[str, int]:
        """What is known, under the names of the service's answers."""
        counts = {
            "rows_affected": self.total,
            "rows_inserted": self.inserted,
            "rows_updated": self.updated,
            "rows_deleted": self.deleted,
        }
        return {name: count for name, count in counts.items() if count is not None}

    @classmethod
    def from_dict(cls, answer: Mapping[str, Any]) -> RowChanges:
        """The opposite of `as_dict`."""
        parts = ("affected", "inserted", "updated", "deleted")
        return cls(*(answer.get(f"rows_{part}") for part in parts))

    def __str__(self) -> str:
        """For people: `2 rows inserted, 1 updated`; empty if nothing is known."""
        counts = {"inserted": self.inserted, "updated": self.updated, "deleted": self.deleted}
        parts = [f"{count} {what}" for what, count in counts.items() if count]
        if self.total is not None and (not parts or None in counts.values()):
            parts = [f"{self.total} affected"]
        elif self.total is None and parts:
            parts += [f"{what} rows not counted" for what, count in counts.items() if count is None]
        if not parts:
            return ""
        number, _, rest = parts[0].partition(" ")
        return ", ".join([f"{number} row{'s' * (number != '1')} {rest}", *parts[1:]])


@dataclass
class Result:
    """The result of a statement, as Arrow or as Python rows.

    >>> result = lake.sql("select id, name from crm.leads order by id")
    >>> result.names, len(result), result.engine
    (['id', 'name'], 3, 'duckdb')
    >>> result.dicts()[0]
    {'id': 1, 'name': 'Ada'}
    >>> result.to_arrow().num_rows, list(result.to_pandas()["name"])
    (3, ['Ada', 'Bo', 'Cy'])
    """

    columns: tuple[Column, ...]
    source: Rows
    explain: Explain
    changes: RowChanges = RowChanges()
    """How many rows INSERT, UPDATE, DELETE or MERGE changed."""
    _rows: list[Row] | None = field(default=None, repr=False)

    @property
    def engine(self) -> str:
        """The engine that ran the statement."""
        return self.explain.engine

    @property
    def rows_affected(self) -> int | None:
        """How many rows INSERT, UPDATE, DELETE or MERGE changed; None if that is not known for certain."""
        return self.changes.total

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return [column.name for column in self.columns]

    def rows(self) -> list[Row]:
        """All rows as Python values."""
        if self._rows is None:
            self._rows = self.source.fetch()
        return self._rows

    def dicts(self) -> list[dict[str, Any]]:
        """All rows as dicts."""
        return [dict(zip(self.names, row, strict=True)) for row in self.rows()]

    def to_arrow(self) -> pyarrow.Table:
        """All rows as an Arrow table."""
        return self.source.arrow()

    def batches(self) -> Iterator[pyarrow.RecordBatch]:
        """The rows as Arrow record batches. A large result of a service is read as it arrives, so it can be read only once."""
        streamed = getattr(self.source, "batches", None)
        return iter(self.to_arrow().to_batches()) if streamed is None else streamed()

    def stream(self) -> tuple[pyarrow.Schema, Iterator[pyarrow.RecordBatch]]:
        """The schema, and the rows as `batches` returns them."""
        if isinstance(self.source, BatchedRows):
            return self.source.schema, self.source.batches()
        table = self.to_arrow()
        return table.schema, iter(table.to_batches())

    def to_pandas(self) -> pandas.DataFrame:
        """All rows as a DataFrame of pandas."""
        return self.to_arrow().to_pandas()

    def to_polars(self) -> polars.DataFrame:
        """All rows as a DataFrame of Polars."""
        import polars

        frame = polars.from_arrow(self.to_arrow())
        assert isinstance(frame, polars.DataFrame)
        return frame

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows())

    def __len__(self) -> int:
        return len(self.rows())

    def _repr_html_(self) -> str:
        """HTML for notebooks."""
        return html_table(self.names, self.rows())


MAX_ROWS_SHOWN = 50


def html_table(names: Sequence[str], rows: Sequence[Row]) -> str:
    """A plain HTML table of the first rows, for notebooks."""
    from html import escape

    head = "".join(f"<th>{escape(name)}</th>" for name in names)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape('' if value is None else str(value))}</td>" for value in row) + "</tr>"
        for row in rows[:MAX_ROWS_SHOWN]
    )
    more = f"<caption>{len(rows)} rows, {MAX_ROWS_SHOWN} shown</caption>" if len(rows) > MAX_ROWS_SHOWN else ""
    return f"<table>{more}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


@dataclass
class ListedRows:
    """Rows that are Python values already."""

    names: Sequence[str]
    listed: list[Row]

    def fetch(self) -> list[Row]:
        return self.listed

    def arrow(self) -> pyarrow.Table:
        import pyarrow

        columns = [[row[place] for row in self.listed] for place in range(len(self.names))]
        return pyarrow.table(columns, names=list(self.names))


@dataclass
class ArrowRows:
    """Rows of an Arrow table."""

    table: pyarrow.Table

    def fetch(self) -> list[Row]:
        from lakehouse.core.python_values import values_of

        return list(zip(*map(values_of, self.table.columns), strict=True))

    def arrow(self) -> pyarrow.Table:
        return self.table


class BatchedRows:
    """Rows that an engine returns while it computes them. They can be read once."""

    def __init__(self, schema: pyarrow.Schema, batches: Iterator[pyarrow.RecordBatch]) -> None:
        self.schema, self._batches = schema, batches

    def batches(self) -> Iterator[pyarrow.RecordBatch]:
        return self._batches

    def arrow(self) -> pyarrow.Table:
        import pyarrow

        return pyarrow.Table.from_batches(self._batches, self.schema)

    def fetch(self) -> list[Row]:
        return ArrowRows(self.arrow()).fetch()


def first_rows(batches: Iterator[pyarrow.RecordBatch], limit: int | None) -> Generator[pyarrow.RecordBatch, None, None]:
    """The first rows of batches; what comes later is not computed. Closes the batches at its end."""
    try:
        for batch in batches:
            if limit is None:
                yield batch
                continue
            yield batch.slice(0, limit)
            limit -= min(limit, batch.num_rows)
            if not limit:
                return
    finally:
        if close := getattr(batches, "close", None):
            close()
