"""The rows of a statement as they arrive: an Arrow stream, of which a large one is never in memory as a whole."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from lakehouse.client.messages import Response
from lakehouse.core.encoding import COLUMNS_KEY, SUMMARY_KEY
from lakehouse.core.errors import LakeError, NotInstalledError, ResultTruncatedError, ServiceUnreachableError
from lakehouse.core.result import ArrowRows, Explain, Result, Row, RowChanges
from lakehouse.core.tables import Column

if TYPE_CHECKING:
    import pyarrow

ARROW = "application/vnd.apache.arrow.stream"
#: A result of this size is read at once, so that its connection is free and its errors are raised by the statement.
_READ_AT_ONCE = 16 << 20


class StreamedRows:
    """The rows of a result, read from an answer when they are needed."""

    def __init__(self, response: Response, limit: int | None) -> None:
        try:
            import pyarrow
        except ImportError as exc:
            response.close()
            raise NotInstalledError("pyarrow", "client") from exc
        self._response, self._limit = response, limit
        self._reader = self._guarded(lambda: pyarrow.ipc.open_stream(response))
        described = (self._reader.schema.metadata or {}).get(COLUMNS_KEY.encode(), b"[]")
        self.columns = tuple(Column(**column) for column in json.loads(described))
        self._schema: pyarrow.Schema = self._reader.schema.remove_metadata()
        self._held: list[pyarrow.RecordBatch] = []
        self._table: pyarrow.Table | None = None
        self.summary: dict[str, Any] | None = None
        self._is_taken = False
        self._hold()

    def batches(self) -> Iterator[pyarrow.RecordBatch]:
        """The rows; those that were not read at once come from the service and are not held."""
        if self._table is not None:
            yield from self._table.to_batches()
            return
        self._check_unread()
        yield from self._held
        if self.summary is not None:
            return
        self._is_taken, self._held = True, []
        while (batch := self._next()) is not None:
            yield batch

    def arrow(self) -> pyarrow.Table:
        """All rows as an Arrow table."""
        import pyarrow

        if self._table is None:
            self._check_unread()
            while self.summary is None:
                if (batch := self._next()) is not None:
                    self._held.append(batch)
            self._table, self._held = pyarrow.Table.from_batches(self._held, self._schema), []
        return self._table

    def fetch(self) -> list[Row]:
        """All rows as tuples."""
        return ArrowRows(self.arrow()).fetch()

    @property
    def explain(self) -> Explain:
        """Which engine ran the statement, and how if that was requested; empty before the end of the stream."""
        summary = self.summary or {}
        return Explain(**summary["explain"]) if "explain" in summary else Explain(summary.get("engine", ""), "")

    @property
    def changes(self) -> RowChanges:
        """How many rows the statement changed; empty before the end of the stream."""
        return RowChanges.from_dict(self.summary or {})

    def _hold(self) -> None:
        """Read the first rows, or all of a small result."""
        size = 0
        while self.summary is None and size < _READ_AT_ONCE:
            batch = self._next()
            if batch is not None:
                self._held.append(batch)
                size += batch.nbytes

    def _next(self) -> pyarrow.RecordBatch | None:
        """The next batch with rows; None if there is none, and then there is a summary."""
        while self.summary is None:
            try:
                batch, metadata = self._guarded(self._reader.read_next_batch_with_custom_metadata)
            except StopIteration as exc:
                self._response.close()
                raise self._incomplete() from exc
            if metadata is not None and SUMMARY_KEY.encode() in metadata:
                self._finish(json.loads(metadata[SUMMARY_KEY.encode()]))
            elif batch.num_rows:
                return batch.replace_schema_metadata(None)
        return None

    def _finish(self, summary: dict[str, Any]) -> None:
        self.summary = summary
        self._response.read()  # the end of the stream, after which the connection can be used again
        cut = summary.get("truncated") and (self._limit is None or summary.get("row_count", 0) < self._limit)
        if cut:
            raise ResultTruncatedError(
                f"The result has more than the {summary.get('row_count'):,} rows that the service returns.",
                "Give a limit, aggregate in SQL, or raise serve.max_rows.",
            )

    def _guarded(self, read: Any) -> Any:
        """Read from the stream; what Arrow makes of a broken one is an error of the connection."""
        import pyarrow

        try:
            return read()
        except (StopIteration, LakeError, KeyboardInterrupt):
            raise
        except (pyarrow.ArrowException, OSError, EOFError) as exc:
            self._response.close()
            raise self._incomplete() from exc

    def _incomplete(self) -> ServiceUnreachableError:
        return ServiceUnreachableError(
            "The service ended its answer before the last row.", "The log of the service has the reason. Try again."
        )

    def _check_unread(self) -> None:
        if self._is_taken:
            raise LakeError("The rows of this result were read before and are not held.", "Run the statement again.")

    def __del__(self) -> None:
        response = getattr(self, "_response", None)
        if response is not None:
            response.close()


class StreamedResult(Result):
    """A result whose engine is known when its last row has arrived."""

    source: StreamedRows

    @classmethod
    def read(cls, response: Response, limit: int | None) -> StreamedResult:
        """The result in an answer."""
        rows = StreamedRows(response, limit)
        return cls(rows.columns, rows, rows.explain)

    @property
    def explain(self) -> Explain:
        """How the statement ran, as far as it is known."""
        return self.source.explain

    @explain.setter
    def explain(self, value: Explain) -> None:
        """Set by the constructor only: what counts is in the last batch."""

    @property
    def changes(self) -> RowChanges:
        """How many rows the statement changed, as far as it is known."""
        return self.source.changes

    @changes.setter
    def changes(self, value: RowChanges) -> None:
        """Set by the constructor only, as `explain`."""
