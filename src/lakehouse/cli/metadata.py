"""`lake inspect`: the metadata of a table as a tree, and the content of its files."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import click

from lakehouse.cli.app import Context, command
from lakehouse.cli.options import complete_tag, limit_option, table_argument
from lakehouse.cli.show import cell, note, show_rows
from lakehouse.core.files import size_text
from lakehouse.core.inspection import FILES, LAYERS, MANIFESTS, MetadataNode
from lakehouse.core.jsonable import jsonable


@command(
    "lake inspect crm.leads\nlake inspect crm.leads --files --snapshot yesterday\nlake inspect crm.leads --raw PATH"
)
@table_argument
@click.option(
    "--snapshot", "when", default="", metavar="WHEN", shell_complete=complete_tag,
    help="Only this snapshot: an id, a tag or a time (default: the newest, and what the current one consists of).",
)  # fmt: skip
@click.option("--layer", type=click.Choice(LAYERS), default=MANIFESTS, help="How deep to go (default: manifests).")
@click.option("--files", is_flag=True, help="Go down to data and delete files, with counts and bounds: --layer files.")
@click.option("--manifest", default="", metavar="PATH", help="Only this manifest of the snapshot (default: all).")
@click.option(
    "--raw", default="", metavar="PATH", help="Print the content of this file of the table instead (default: the tree)."
)
@limit_option("entries of each layer", 20, minimum=1)
def inspect(  # noqa: PLR0913 - one parameter per option
    context: Context, table: str, when: str, layer: str, files: bool, manifest: str, raw: str, limit: int
) -> None:
    """Show what TABLE consists of: metadata file, schemas, snapshots, manifest lists, manifests, data files, each with its path.

    Of a Hudi table, its timeline and file slices. `--raw` prints one of these files; of a data file, its footer.
    """
    if raw:
        file = context.lake.inspect_file(table, raw, when, manifest)
        sys.stdout.write(file.text.rstrip("\n") + "\n")
        if file.left_out:
            note(f"Shortened: {file.left_out:,} more characters or records are in {file.path}.")
        return
    tree = context.lake.inspect(table, when, FILES if files or manifest else layer, manifest, limit)
    if context.output == "json":
        sys.stdout.write(json.dumps(as_json(tree), indent=1, ensure_ascii=False) + "\n")
    elif context.output == "csv":
        names = ["depth", "kind", "name", "path", "left_out", "facts"]
        show_rows(names, list(_rows(tree)), "csv")
    else:
        for line in tree_lines(tree):
            sys.stdout.write(line + "\n")


def as_json(node: MetadataNode) -> dict[str, Any]:
    """A node with those below it as JSON, as the service returns it."""
    parts = {"kind": node.kind, "name": node.name, "path": node.path, "facts": jsonable(dict(node.facts))}
    return {**parts, "children": [as_json(child) for child in node.children], "left_out": node.left_out}


def _rows(node: MetadataNode, depth: int = 0) -> Iterator[tuple[Any, ...]]:
    yield depth, node.kind, node.name, node.path, node.left_out, jsonable(dict(node.facts))
    for child in node.children:
        yield from _rows(child, depth + 1)


def tree_lines(node: MetadataNode, before: str = "", below: str = "") -> Iterator[str]:
    """The lines of a tree: each node with its facts, and under it its path.

    Args:
        before: what stands before the first line.
        below: what stands before all others.
    """
    words = _WORDS.get(node.kind, _file_words)(node.facts)
    yield f"{before}{node.kind} {node.name}" + (f"  {words}" if words else "")
    has_more = bool(node.children or node.left_out)
    inside = below + ("│   " if has_more else "    ")
    if node.path:
        yield inside + node.path
    for line in _details(node):
        yield inside + line
    for position, child in enumerate(node.children):
        is_last = position == len(node.children) - 1 and not node.left_out
        start, rest = ("└── ", "    ") if is_last else ("├── ", "│   ")
        yield from tree_lines(child, below + start, below + rest)
    if node.left_out:
        yield f"{below}└── … {node.left_out:,} more {_BELOW.get(node.kind, 'entries')}"


#: What a node has below it, and where to see more of it.
_BELOW = {
    "metadata": "snapshots (--limit, --snapshot)",
    "timeline": "instants (--limit, --snapshot)",
    "snapshot": "manifest list (--snapshot)",
    "manifest-list": "manifests (--limit)",
    "manifest": "files (--files, --manifest, --limit)",
    "instant": "file slices (--snapshot, --limit)",
}


def _details(node: MetadataNode) -> Iterator[str]:
    """The changes of a schema, the bounds of a file."""
    for change in node.facts.get("changes", ()):
        before, after = change["before"], change["after"]
        values = f"{before} -> {after}" if before and after else before or after
        yield f"{change['change']}: {change['column']}" + (f" {values}" if values else "")
    bounds: Mapping[str, Any] = node.facts.get("bounds", {})
    nulls = node.facts.get("nulls", {})
    for column, (lower, upper) in bounds.items():
        yield f"{column}: {cell(lower)} … {cell(upper)}" + (f", {nulls[column]:,} nulls" if column in nulls else "")
    for column in nulls:
        if column not in bounds:
            yield f"{column}: {nulls[column]:,} nulls"
    if node.facts.get("columns_left_out"):
        yield f"… {node.facts['columns_left_out']} more columns"


def _counted(count: int | None, noun: str) -> str:
    return f"{count or 0:,} {noun}{'' if count == 1 else 's'}"


def _metadata_words(facts: Mapping[str, Any]) -> str:
    return f"format version {facts['format_version']}, {_counted(facts['snapshots'], 'snapshot')}, {_counted(facts['schemas'], 'schema')}"


def _snapshot_words(facts: Mapping[str, Any]) -> str:
    marks = [*(["current"] if facts["is_current"] else []), *facts.get("refs", ())]
    counts = f"+{facts['rows_added'] or 0:,} -{facts['rows_removed'] or 0:,}: {_counted(facts['rows'], 'row')}"
    size = f"{_counted(facts['files'], 'file')}, {size_text(facts['bytes'] or 0)}"
    named = f" ({', '.join(dict.fromkeys(marks))})" if marks else ""
    return f"{facts['at']} {facts['operation']}{named}, {counts} in {size}"


def _manifest_words(facts: Mapping[str, Any]) -> str:
    counts = ", ".join(f"{facts[f'files_{status}'] or 0:,} {status}" for status in ("added", "existing", "deleted"))
    return f"{facts['content']}, {size_text(facts['bytes'])}: {counts}"


def _file_words(facts: Mapping[str, Any]) -> str:
    rows = f"{_counted(facts['rows'], 'row')}, " if facts.get("rows") is not None else ""
    where = f", {facts['partition']}" if facts.get("partition") else ""
    return f"{facts['status']}, {rows}{size_text(facts['bytes'])}{where}"


def _schema_words(facts: Mapping[str, Any]) -> str:
    since = f", first in snapshot {facts['first_snapshot']}" if facts["first_snapshot"] else ""
    return f"{_counted(facts['columns'], 'column')}{', current' if facts['is_current'] else ''}{since}"


_WORDS: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "metadata": _metadata_words,
    "timeline": lambda facts: _counted(facts["instants"], "instant"),
    "schema": _schema_words,
    "snapshot": _snapshot_words,
    "instant": _snapshot_words,
    "manifest-list": lambda facts: _counted(facts["manifests"], "manifest"),
    "manifest": _manifest_words,
}
