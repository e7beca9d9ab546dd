"""Namespaces: listed, made, changed, dropped."""

from __future__ import annotations

from lakehouse.rest_catalog import names
from lakehouse.rest_catalog.answers import Answer, Call, properties_of
from lakehouse.rest_catalog.backing import Backing
from lakehouse.rest_catalog.pages import asked, cut
from lakehouse.rest_catalog.problems import NoSuchNamespace, Problem, Unprocessable


class NamespaceCalls:
    """The requests about namespaces."""

    def __init__(self, backing: Backing) -> None:
        self._backing, self._rows = backing, backing.namespaces

    def list(self, call: Call) -> Answer:
        """The namespaces right below one, or at the top."""
        parent = call.query.get("parent", "")
        above = names.levels_of(names.from_address(parent)) if parent else []
        deep = len(above)
        every = [names.levels_of(key) for key in self._rows.keys(call.branch)]
        below = sorted({levels[deep] for levels in every if len(levels) > deep and levels[:deep] == above})
        if parent and not below and not self._rows.is_there(call.branch, names.namespace_key(above)):
            raise NoSuchNamespace(f"Namespace does not exist: {'.'.join(above)}")
        after, most = asked(call)
        shown, token = cut([name for name in below if name > after], most)
        return Answer(body={"namespaces": [[*above, name] for name in shown], "next-page-token": token})

    def create(self, call: Call) -> Answer:
        """Make a namespace."""
        levels = call.body.get("namespace")
        if not isinstance(levels, list) or not levels or not all(isinstance(level, str) for level in levels):
            raise Problem("The request lacks 'namespace', a list of names.")
        properties = properties_of(call.body.get("properties"))
        answer = Answer(body={"namespace": levels, "properties": properties})
        self._rows.create(call.branch, names.namespace_key(levels), properties, call.keep(answer))
        return answer

    def load(self, call: Call) -> Answer:
        """A namespace's properties."""
        key = call.namespace
        # Trino makes a table by a plain create, and then stumbles over its first metadata file, where no location is told.
        properties = {"location": self._backing.folder(call.branch, key), **self._rows.properties(call.branch, key)}
        return Answer(body={"namespace": names.levels_of(key), "properties": properties})

    def exists(self, call: Call) -> Answer:
        """Whether there is such a namespace."""
        self._rows.properties(call.branch, call.namespace)
        return Answer(204)

    def change(self, call: Call) -> Answer:
        """Set and remove properties."""
        updates = properties_of(call.body.get("updates"))
        removals = call.body.get("removals") or []
        if not isinstance(removals, list) or not all(isinstance(each, str) for each in removals):
            raise Problem("The removals must be a list of names.")
        if both := sorted(set(removals) & set(updates)):
            raise Unprocessable(f"The properties {', '.join(both)} cannot be set and removed at once.")
        there = set(self._rows.properties(call.branch, call.namespace))
        told = {"updated": sorted(updates), "removed": sorted(there & set(removals))}
        answer = Answer(body={**told, "missing": sorted(set(removals) - there)})
        self._rows.change(call.branch, call.namespace, updates, removals, call.keep(answer))
        return answer

    def drop(self, call: Call) -> Answer:
        """Forget an empty namespace."""
        answer = Answer(204)
        self._rows.drop(call.branch, call.namespace, call.keep(answer))
        return answer
