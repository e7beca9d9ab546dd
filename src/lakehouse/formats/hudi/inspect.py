"""The metadata of a Hudi table as a tree: its timeline, the schemas of its commits, and the file slices at an instant."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from typing import Any

from lakehouse.core.dataclass import dataclass
from lakehouse.core.errors import NotFoundError, NotSupportedError, TableError, WhenError
from lakehouse.core.files import file_uri, local_path
from lakehouse.core.inspection import (
    SNAPSHOTS,
    InspectRequest,
    MetadataFile,
    MetadataNode,
    SchemaField,
    file_name,
    names_file,
    newest,
    parquet_footer,
    schema_changes,
    short_text,
    shown_text,
    undecoded,
)
from lakehouse.core.jsonable import jsonable
from lakehouse.core.tables import Column, FileSlice, Snapshot
from lakehouse.formats.hudi import timeline
from lakehouse.formats.hudi.locations import Locations
from lakehouse.formats.hudi.metadata import HudiMetadata
from lakehouse.formats.hudi.slices import file_slices
from lakehouse.formats.hudi.timeline import Instant

_PROPERTIES = ".hoodie/hoodie.properties"
#: A data file in an object store is read whole for its footer, so a larger one is refused.
_LARGEST_FOOTER_READ = 64_000_000


@dataclass(frozen=True)
class Inspector:
    """Reads what a table's folder states about the table."""

    metadata: HudiMetadata
    locations: Locations

    def tree(self, request: InspectRequest) -> MetadataNode:
        """Return the timeline with what is below it, down to a layer."""
        history = timeline.snapshots(self.metadata.instants)
        shown, left_out = newest(history, request.limit)
        if request.snapshot:
            shown, left_out = [self._known(history, request.snapshot)], len(history) - 1
        opened = request.snapshot or (history[-1].id if history else "")
        nodes = [self._instant(snapshot, request, snapshot.id == opened) for snapshot in shown]
        facts = {
            "location": self.metadata.location,
            "key": list(self.metadata.key),
            "partitioned_by": list(self.metadata.partitioning),
            "current_instant": history[-1].id if history else "",
            "instants": len(history),
        }
        schemas = () if request.snapshot else self._schemas(request.limit)
        path = f"{self.metadata.location}/{_PROPERTIES}"
        return MetadataNode("timeline", file_name(path), path, facts, (*schemas, *nodes), left_out)

    def _instant(self, snapshot: Snapshot, request: InspectRequest, is_open: bool) -> MetadataNode:
        facts = {
            "at": jsonable(snapshot.at),
            "operation": snapshot.operation,
            "rows_added": snapshot.rows_added,
            "rows_removed": snapshot.rows_removed,
            "rows": snapshot.rows_total,
            "files": snapshot.files_total,
            "bytes": snapshot.bytes_total,
            "parent": snapshot.parent,
            "source": snapshot.source,
            "refs": [],
            "is_current": snapshot.is_current,
        }
        instants = self._until(snapshot.id)
        path = self._path(instants[-1])
        if not is_open or request.layer == SNAPSHOTS:
            return MetadataNode("instant", snapshot.id, path, facts, left_out=snapshot.files_total or 0)
        slices = [part for part in file_slices(instants) if part.is_latest]
        nodes = tuple(self._slice(part, snapshot.id) for part in slices[: request.limit])
        return MetadataNode("instant", snapshot.id, path, facts, nodes, len(slices) - len(nodes))

    def _slice(self, part: FileSlice, instant: str) -> MetadataNode:
        base, *logs = part.files
        facts = {
            "status": "added" if part.instant == instant else "existing",
            "added_by": part.instant,
            "group": part.group,
            "partition": part.partition,
            "bytes": part.bytes,
            "log_files": [self._file(log) for log in logs],
        }
        return MetadataNode("file-slice", file_name(base), self._file(base), facts)

    def _schemas(self, limit: int) -> list[MetadataNode]:
        """The newest schemas, oldest first, each with the instant that first had it."""
        versions: list[tuple[Instant, tuple[Column, ...]]] = []
        for instant in self.metadata.instants:
            columns = timeline.columns(instant)
            if columns and (not versions or versions[-1][1] != columns):
                versions.append((instant, columns))
        nodes = []
        for place in range(max(len(versions) - limit, 0), len(versions)):
            instant, columns = versions[place]
            before = _fields(versions[place - 1][1]) if place else {}
            facts = {
                "columns": len(columns),
                "is_current": place == len(versions) - 1,
                "first_snapshot": instant.id,
                "at": jsonable(timeline.moment(instant.id)),
                "changes": schema_changes(before, _fields(columns)) if place else [],
            }
            nodes.append(MetadataNode("schema", str(place), facts=facts))
        return nodes

    # ---- one file -----------------------------------------------------------------------------------------------

    def file(self, path: str, request: InspectRequest) -> MetadataFile:
        """Return the content of a file of this table; an instant is also named by its id."""
        properties = f"{self.metadata.location}/{_PROPERTIES}"
        if names_file(path, properties):
            text = self.locations.read(properties).decode(errors="replace")
            return shown_text(properties, "timeline", len(text), text)
        for instant in self.metadata.instants:
            stored = self._path(instant)
            if path == instant.id or (stored and names_file(path, stored)):
                text = json.dumps(dict(instant.metadata), indent=2, ensure_ascii=False)
                return shown_text(stored or instant.id, "instant", -1, text)
        for part in file_slices(self._until(request.snapshot)):
            for name in part.files:
                if names_file(path, self._file(name)):
                    return self._footer(self._file(name), part.bytes)
        raise NotFoundError(
            f"{short_text(path)} is no file of this table.", "List the files: lake inspect TABLE --files"
        )

    def _footer(self, path: str, size: int) -> MetadataFile:
        is_remote = not path.startswith("file:")
        if is_remote and size > _LARGEST_FOOTER_READ:
            raise NotSupportedError(f"{path} has {size} bytes, too many to read its footer.", "Use DuckDB or Spark.")
        try:
            source: Any = io.BytesIO(self.locations.read(path)) if is_remote else str(local_path(path))
            return parquet_footer(source, path, "file-slice", size)
        except FileNotFoundError as exc:
            raise TableError(f"The file {path} is gone.", "Hudi's cleaner removes old file slices.") from exc
        except ValueError:  # a log file
            return undecoded(path, "file-slice", size)

    # ---- reading ------------------------------------------------------------------------------------------------

    def _until(self, instant_id: str) -> list[Instant]:
        return [instant for instant in self.metadata.instants if not instant_id or instant.id <= instant_id]

    def _known(self, history: Sequence[Snapshot], instant_id: str) -> Snapshot:
        for snapshot in history:
            if snapshot.id == instant_id:
                return snapshot
        raise WhenError(f"There is no instant {instant_id}.", "List them: lake history TABLE")

    def _file(self, relative: str) -> str:
        return f"{self.metadata.location}/{relative}"

    def _path(self, instant: Instant) -> str:
        """The file of an instant; its name has the time of completion, which only a listing of the folder tells."""
        if not self.metadata.location.startswith("file:"):
            return ""
        folder = local_path(self.metadata.location) / ".hoodie"
        files = [
            *folder.glob(f"timeline/{instant.id}_*.{instant.action}"),
            *folder.glob(f"{instant.id}*.{instant.action}"),
        ]
        return file_uri(files[0]) if files else ""


def _fields(columns: Sequence[Column]) -> dict[str, SchemaField]:
    """Columns by their names: Hudi's commits have no ids of columns, so a renamed one is another."""
    return {column.name: SchemaField(column.name, column.type, column.required, column.comment) for column in columns}
