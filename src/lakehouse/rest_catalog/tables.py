"""Tables: listed, made, loaded, registered, renamed, dropped."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from lakehouse.rest_catalog import names
from lakehouse.rest_catalog.answers import Answer, Call
from lakehouse.rest_catalog.backing import Backing
from lakehouse.rest_catalog.commits import identified, put_new
from lakehouse.rest_catalog.creation import first_metadata
from lakehouse.rest_catalog.files import new_location
from lakehouse.rest_catalog.pages import page
from lakehouse.rest_catalog.pointers import TABLE, Swap, missing
from lakehouse.rest_catalog.problems import CommitFailed


class Tables:
    """The requests about tables, but for commits."""

    def __init__(self, backing: Backing) -> None:
        self._backing = backing

    def list(self, call: Call) -> Answer:
        """The tables of a namespace."""
        return page(self._backing, call, TABLE)

    def load(self, call: Call) -> Answer:
        """A table's metadata."""
        location = self._backing.pointers.get(call.branch, call.table)
        self._backing.files.check_there(location)
        return Answer(metadata=location)

    def exists(self, call: Call) -> Answer:
        """Whether there is such a table."""
        self._backing.pointers.get(call.branch, call.table)
        return Answer(204)

    def create(self, call: Call) -> Answer:
        """Make a table or, where it is only staged, say what it will be."""
        name = names.table_name(call.namespace, call.text("name"))
        backing = self._backing
        backing.pointers.check_free(call.branch, name, TABLE)
        location = backing.default_location(call.branch, name)
        metadata, content = first_metadata(name, call.body, location, backing.default_properties)
        if call.body.get("stage-create"):
            backing.files.make_room(metadata.location)
            return Answer(body={"metadata": json.loads(content)}, staged=True)
        location = new_location(metadata.location, metadata.properties)
        answer = Answer(metadata=location)
        put_new(backing, call, Swap(name, None, location), content, call.keep(answer))
        return answer

    def register(self, call: Call) -> Answer:
        """Point a name at metadata that is there already; where asked to, also one that points elsewhere now."""
        name = names.table_name(call.namespace, call.text("name"))
        location = call.text("metadata-location")
        self._backing.files.table(location)
        answer = Answer(metadata=location)
        start = self._backing.pointers.find(call.branch, name) if call.body.get("overwrite") else None
        swap = Swap(name, start, location)
        if start != location and not self._backing.pointers.swap(call.branch, [swap], call.keep(answer)):
            raise CommitFailed(f"Others changed {names.shown(name)} in the meantime.")
        return answer

    def rename(self, call: Call) -> Answer:
        """Give a table another name."""
        start, end = identified(call.body.get("source")), identified(call.body.get("destination"))
        answer = Answer(204)
        self._backing.pointers.rename(call.branch, start, end, TABLE, call.keep(answer))
        return answer

    def drop(self, call: Call) -> Answer:
        """Take a table out of the catalog so that it can be brought back.

        Its files stay even where a purge is asked for: another branch may share them, and maintenance, which asks
        every branch, removes what nobody needs.
        """
        name = call.table
        if not self._backing.catalog.on(call.branch).drop(name, datetime.now(UTC).isoformat()):
            raise missing(name, TABLE)
        return Answer(204)

    def report_metrics(self, call: Call) -> Answer:
        """Take note of a scan or commit; nobody reads them yet."""
        call.text("report-type")
        return Answer(204)
