"""Trino's errors as LakeErrors."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from lakehouse.core.errors import EngineError, EngineUnreachableError, QueryRejectedError

_POSITION = re.compile(r"^line (\d+):(\d+): ")


@contextmanager
def translated(sql: str, url: str) -> Iterator[None]:
    """Raise what Trino's client raises in this block as a LakeError."""
    import requests
    from trino.exceptions import TrinoConnectionError, TrinoQueryError, TrinoUserError

    try:
        yield
    except TrinoUserError as exc:
        text = exc.message or ""
        position = _POSITION.match(text)
        line, column = (int(position[1]), int(position[2])) if position else (None, None)
        raise QueryRejectedError(_POSITION.sub("", text), sql=sql, line=line, column=column) from exc
    except TrinoQueryError as exc:
        if exc.error_name in ("USER_CANCELED", "ADMINISTRATIVELY_KILLED"):
            raise EngineError("The statement was cancelled in Trino.") from exc
        hint = "lake logs trino" if exc.error_type != "EXTERNAL" else "Does the server of that catalog run? lake status"
        raise EngineError(f"Trino failed: {exc.message} ({exc.error_name}).", hint) from exc
    except (TrinoConnectionError, requests.exceptions.RequestException) as exc:
        raise EngineUnreachableError(
            f"Trino does not answer at {url}.", "Start it: lake up trino. Or check trino.url: lake config show"
        ) from exc
