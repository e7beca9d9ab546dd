"""Views: listed, made, loaded, changed, registered, renamed, dropped."""

from __future__ import annotations

from pyiceberg.catalog.rest import CreateViewRequest
from pyiceberg.view.metadata import ViewMetadata

from lakehouse.rest_catalog import names, views
from lakehouse.rest_catalog.answers import Answer, Call, properties_of
from lakehouse.rest_catalog.backing import COMMIT_TRIES, Backing, parsed
from lakehouse.rest_catalog.commits import identified, put_new
from lakehouse.rest_catalog.files import new_location
from lakehouse.rest_catalog.pages import page
from lakehouse.rest_catalog.pointers import VIEW, Swap
from lakehouse.rest_catalog.problems import CommitFailed


class ViewCalls:
    """The requests about views."""

    def __init__(self, backing: Backing) -> None:
        self._backing = backing

    def list(self, call: Call) -> Answer:
        """The views of a namespace."""
        return page(self._backing, call, VIEW)

    def load(self, call: Call) -> Answer:
        """A view's metadata."""
        return Answer(metadata=self._backing.pointers.get(call.branch, call.table, VIEW))

    def exists(self, call: Call) -> Answer:
        """Whether there is such a view."""
        self._backing.pointers.get(call.branch, call.table, VIEW)
        return Answer(204)

    def create(self, call: Call) -> Answer:
        """Make a view."""
        name = names.table_name(call.namespace, call.text("name"))
        backing = self._backing
        backing.pointers.check_free(call.branch, name, VIEW)
        properties = properties_of(call.body.get("properties"))
        given = {"location": call.body.get("location"), "name": name.table, "properties": properties}
        request = parsed(CreateViewRequest, {**call.body, **given})
        folder = (request.location or backing.default_location(call.branch, name)).rstrip("/")
        metadata = views.new_view(folder, request.view_schema, request.view_version, properties)
        location = new_location(folder, properties)
        answer = Answer(metadata=location)
        put_new(backing, call, Swap(name, None, location, VIEW), _content(metadata), call.keep(answer))
        return answer

    def change(self, call: Call) -> Answer:
        """Apply updates to a view; again, if it moved meanwhile and is still the same view."""
        request = parsed(views.CommitViewRequest, call.body)
        backing, name = self._backing, call.table
        for _ in range(COMMIT_TRIES):
            start = backing.pointers.get(call.branch, name, VIEW)
            base = backing.files.view(start)
            views.check(request.requirements, base)
            result = views.changed(base, request.updates)
            if result is base:
                return Answer(metadata=start)
            end = new_location(result.location, result.properties, start)
            backing.files.write(end, _content(result))
            if backing.pointers.swap(call.branch, [Swap(name, start, end, VIEW)], call.keep(Answer(metadata=end))):
                return Answer(metadata=end)
            backing.files.remove(end)
        raise CommitFailed(f"Others changed {names.shown(name)} {COMMIT_TRIES} times in the meantime.")

    def register(self, call: Call) -> Answer:
        """Point a name at a view's metadata that is there already."""
        name = names.table_name(call.namespace, call.text("name"))
        location = call.text("metadata-location")
        self._backing.files.view(location)
        answer = Answer(metadata=location)
        self._backing.pointers.swap(call.branch, [Swap(name, None, location, VIEW)], call.keep(answer))
        return answer

    def rename(self, call: Call) -> Answer:
        """Give a view another name."""
        start, end = identified(call.body.get("source")), identified(call.body.get("destination"))
        answer = Answer(204)
        self._backing.pointers.rename(call.branch, start, end, VIEW, call.keep(answer))
        return answer

    def drop(self, call: Call) -> Answer:
        """Forget a view."""
        answer = Answer(204)
        self._backing.pointers.drop_view(call.branch, call.table, call.keep(answer))
        return answer


def _content(metadata: ViewMetadata) -> bytes:
    return str(metadata.model_dump_json()).encode()
