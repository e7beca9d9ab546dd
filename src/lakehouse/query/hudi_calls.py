"""The calls of Hudi's procedures that maintenance may make. They delete files, so the guard refuses them to everybody else."""

from __future__ import annotations

import re

from lakehouse.core.errors import StatementRefusedError
from lakehouse.core.quoting import spark_text
from lakehouse.core.requests import QueryRequest
from lakehouse.core.statement import Statement

_CALL = re.compile(
    r"CALL (?:run_compaction|run_clustering|run_clean)\(table => ('[^'\\]+')(?:, (?!table\b|path\b)\w+ => (?:'[^'\\]*'|\d+))*\)"
)


def maintenance_call(request: QueryRequest) -> Statement:
    """Return the statement of a request of maintenance, which may name only the table that it maintains."""
    call = _CALL.fullmatch(request.sql)
    if call is None or call[1] != spark_text(request.maintains):
        raise StatementRefusedError(
            f"This is not a call of a procedure that maintains {request.maintains}.",
            f"lake maintain {request.maintains}",
        )
    return Statement(request.sql, "write")
