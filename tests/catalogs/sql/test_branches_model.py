"""Branches, tags, merges, drops and reverts in any order, beside a model that keeps every table as a set of numbers."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, multiple, rule
from tests.support.repetitions import repetitions

from lakehouse.catalogs.sql import SqlCatalog, open_database
from lakehouse.core.names import MAIN, TableName
from lakehouse.core.refs import Commit

TABLES = tuple(TableName("shop", name) for name in ("a", "b", "c"))
State = dict[TableName, int]


@dataclass
class Branch:
    """A branch of the model: what it holds, and what main was for it when it began."""

    base: State
    here: State


@dataclass
class Model:
    """Everything that the catalog should know. A table's content is the number of the write that made it."""

    main: State = field(default_factory=dict)
    branches: dict[str, Branch] = field(default_factory=dict)
    tags: dict[str, State] = field(default_factory=dict)
    commits: dict[str, dict[TableName, tuple[int | None, int | None]]] = field(default_factory=dict)

    def changed(self, name: str) -> dict[TableName, tuple[int | None, int | None]]:
        branch = self.branches[name]
        pairs = {table: (branch.base.get(table), branch.here.get(table)) for table in TABLES}
        return {table: pair for table, pair in pairs.items() if pair[0] != pair[1]}

    def apply(self, changes: dict[TableName, tuple[int | None, int | None]]) -> bool:
        """All of them, or none if a table is not what it was."""
        if any(self.main.get(table) != before for table, (before, _) in changes.items()):
            return False
        for table, (_, after) in changes.items():
            self.main.pop(table, None)
            if after is not None:
                self.main[table] = after
        return True


class Branching(RuleBasedStateMachine):
    """What people and engines do to a catalog, against the model."""

    branches: Bundle[str] = Bundle("branches")
    tags: Bundle[str] = Bundle("tags")
    commits: Bundle[str] = Bundle("commits")

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.catalog = SqlCatalog(open_database(Path(self.folder.name) / "catalog.db"), "file:///nowhere")
        self.model, self.count = Model(), 0

    def teardown(self) -> None:
        self.folder.cleanup()

    def _next(self) -> int:
        self.count += 1
        return self.count

    def _write(self, name: str, table: TableName, content: int) -> None:
        """What Spark and PyIceberg do: a row where none is, or the pointer exchanged if nobody was faster."""
        here = self.catalog.on(name)
        before, after = here.pointer(table), f"file:///{content}"
        here.ensure_namespace(table.namespace)
        if before is not None:
            assert here.swap_pointer(table, before, after)
            return
        with self.catalog.database.transaction() as db:
            row = (here.name, table.namespace, table.table, after, "TABLE")
            db.execute("INSERT INTO iceberg_tables VALUES (?, ?, ?, ?, NULL, ?)", row)

    @initialize()
    def begin(self) -> None:
        for table in TABLES[:2]:
            self.write_to_main(table)

    @rule(table=st.sampled_from(TABLES))
    def write_to_main(self, table: TableName) -> None:
        self.model.main[table] = self._next()
        self._write(MAIN, table, self.count)

    @rule(name=branches, table=st.sampled_from(TABLES))
    def write_to_branch(self, name: str, table: TableName) -> None:
        self.model.branches[name].here[table] = self._next()
        self._write(name, table, self.count)

    @rule(target=branches)
    def branch_from_main(self) -> str:
        name = f"b{self._next()}"
        self.model.branches[name] = Branch(dict(self.model.main), dict(self.model.main))
        self.catalog.create_branch(name)
        return name

    @rule(target=branches, source=branches)
    def branch_from_branch(self, source: str) -> str:
        name, from_ = f"b{self._next()}", self.model.branches[source]
        self.model.branches[name] = Branch(dict(from_.base), dict(from_.here))
        self.catalog.create_branch(name, source)
        return name

    @rule(target=branches, source=tags)
    def branch_from_tag(self, source: str) -> str:
        name, held = f"b{self._next()}", self.model.tags[source]
        self.model.branches[name] = Branch(dict(held), dict(held))
        self.catalog.create_branch(name, source)
        return name

    @rule(name=consumes(branches))
    def drop_branch(self, name: str) -> None:
        del self.model.branches[name]
        assert self.catalog.drop_branch(name)

    @rule(target=commits, name=consumes(branches))
    def merge(self, name: str) -> Any:
        changes = self.model.changed(name)
        done = self.catalog.publish(name, Commit(message=name))
        assert bool(done) == self.model.apply(changes)
        if not done:
            assert set(done.conflicts) == {
                table for table, (start, _) in changes.items() if self.model.main.get(table) != start
            }
            assert self.catalog.drop_branch(name)  # it was left as it is
        del self.model.branches[name]
        if not done.entry:
            return multiple()
        self.model.commits[done.entry] = changes
        return done.entry

    @rule(target=commits, entry=commits)
    def revert(self, entry: str) -> Any:
        undo = {table: (after, before) for table, (before, after) in self.model.commits[entry].items()}
        done = self.catalog.revert(entry, Commit())
        assert bool(done) == self.model.apply(undo)
        if not done:
            return multiple()
        self.model.commits[done.entry] = undo
        return done.entry

    @rule(target=tags, source=st.none() | branches)
    def tag(self, source: str | None) -> str:
        name = f"t{self._next()}"
        self.model.tags[name] = dict(self.model.branches[source].here if source else self.model.main)
        self.catalog.create_tag(name, source or MAIN)
        return name

    @rule(name=consumes(tags))
    def drop_tag(self, name: str) -> None:
        del self.model.tags[name]
        assert self.catalog.drop_tag(name)

    @rule(name=st.none() | branches, table=st.sampled_from(TABLES))
    def drop_table(self, name: str | None, table: TableName) -> None:
        state = self.model.branches[name].here if name else self.model.main
        assert self.catalog.on(name or MAIN).drop(table, "2026-01-01") == (state.pop(table, None) is not None)

    @invariant()
    def everything_is_what_the_model_says(self) -> None:
        assert self._state(MAIN) == self.model.main
        assert sorted(self.catalog.branches()) == sorted(self.model.branches)
        for name, branch in self.model.branches.items():
            assert self._state(name) == branch.here
            assert {change.table for change in self.catalog.changes(name)} == set(self.model.changed(name))
        assert {ref.name for ref in self.catalog.tags()} == set(self.model.tags)
        for name, state in self.model.tags.items():
            pointers = self.catalog.tag_pointers(name)
            assert pointers is not None
            assert {table: _content(place) for table, place in pointers.items()} == state

    @invariant()
    def nothing_that_is_needed_is_out_of_reach(self) -> None:
        needed = set(self.model.main.values())
        for branch in self.model.branches.values():
            needed |= {*branch.base.values(), *branch.here.values()}
        for state in self.model.tags.values():
            needed |= set(state.values())
        for changes in self.model.commits.values():
            needed |= {content for pair in changes.values() for content in pair if content is not None}
        assert needed <= {_content(file.pointer) for file in self.catalog.reachable()}

    def _state(self, name: str) -> State:
        here = self.catalog.on(name)
        return {table: _content(place) for table in here.tables() if (place := here.pointer(table))}


def _content(pointer: str) -> int:
    return int(pointer.rpartition("/")[2])


Branching.TestCase.settings = settings(
    max_examples=repetitions(10, 100),
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
TestBranching = pytest.mark.faults(pytest.mark.slow(Branching.TestCase))
