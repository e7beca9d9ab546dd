"""Write docs/api.md, the reference of the Python API, from docstrings and signatures.

python tools/api_reference.py       # refreshes the page
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "src"))

import lakehouse  # noqa: E402 - after the path
import lakehouse.pipelines  # noqa: E402
import lakehouse.quality  # noqa: E402
from lakehouse.core.result import Result  # noqa: E402
from lakehouse.lake import Lake  # noqa: E402
from lakehouse.lake.table import Table  # noqa: E402
from lakehouse.versioning.branches import Branches  # noqa: E402
from lakehouse.versioning.log import Log  # noqa: E402

PAGE = ROOT / "docs" / "api.md"

#: What every example may use; the page shows it, and the tests run it before each example.
PRELUDE = """\
from datetime import UTC, datetime, timedelta
from pathlib import Path

from lakehouse import LakeError, Settings, connect, open_lake
from lakehouse.core.names import TableName
from lakehouse.core.requests import DiffRequest, IngestRequest, MaintainRequest, QueryRequest, RunRequest
from lakehouse.engines.duckdb import DuckDB, DuckDBEngine
from lakehouse.engines.spark.settings import SparkSettings
from lakehouse.pipelines import *
from lakehouse.pipelines import functions as F
from lakehouse.quality import *
"""

_HEAD = f"""\
# API reference

Every public name of `lakehouse`, `lakehouse.pipelines` and `lakehouse.quality`, and the methods of the objects that they return. `python tools/api_reference.py`
writes this page from the docstrings, so `help(lakehouse.open_lake)` says the same. Tests run every example
(`tests/test_api_reference.py`). Parameters named WHEN take a snapshot id, a tag, a branch, a timestamp or words such as `yesterday` ([sql.md](sql.md)).

The examples begin with

```python
{PRELUDE}```

and use an open `lake` with the table `crm.leads` (key `id`), whose second snapshot raised the score of Cy from 90 to 95:

| id | name | score |
|---|---|---|
| 1 | Ada | 70 |
| 2 | Bo | 40 |
| 3 | Cy | 95 |
"""

#: Sections of the page: a module whose `__all__` is documented, or a class whose members are.
SECTIONS: tuple[tuple[str, ModuleType | type], ...] = (
    ("lakehouse", lakehouse),
    ("Lake: what open_lake() returns", Lake),
    ("Table: what Lake.table() returns", Table),
    ("Result: what Lake.sql() returns", Result),
    ("Branches and tags: Lake.refs.branches", Branches),
    ("The log: Lake.refs.log", Log),
    ("lakehouse.pipelines", lakehouse.pipelines),
    ("lakehouse.quality", lakehouse.quality),
)
#: Of these classes every method has an example of its own; of the others the class has one.
_EXAMPLE_PER_METHOD = (Lake,)


@dataclass(frozen=True)
class Entry:
    """A public class, function, method or property."""

    name: str
    value: Any
    needs_example: bool = True

    @cached_property
    def docstring(self) -> str:
        value = self.value
        # A dataclass without a docstring gets its signature as one; an inherited docstring is that of the base class.
        text = value.__dict__.get("__doc__") if isinstance(value, type) else inspect.getdoc(value)
        return "" if not text or text.startswith(f"{self.name}(") else inspect.cleandoc(text)

    @property
    def has_example(self) -> bool:
        return ">>>" in self.docstring

    @property
    def heading(self) -> str:
        if isinstance(self.value, type):
            return f"class {self.name}"
        if isinstance(self.value, property):
            return f"{self.name}: {inspect.signature(self.value.fget).return_annotation}"
        return f"{self.name}{_signature(self.value)}"


def members(owner: type, needs_example: bool) -> list[Entry]:
    """The public methods and properties of a class, those of its own first; fields are listed apart."""
    names = dict.fromkeys(name for base in owner.__mro__[:-1] for name in vars(base) if not name.startswith("_"))
    entries = [(name, inspect.getattr_static(owner, name)) for name in names]
    declared = getattr(owner, "__dataclass_fields__", {})
    return [
        Entry(f"{owner.__name__}.{name}", value, needs_example)
        for name, value in entries
        if (inspect.isfunction(value) and name not in declared) or isinstance(value, property)
    ]


def entries_of(part: ModuleType | type) -> Iterator[Entry]:
    """What a section documents, in the order of the page."""
    if isinstance(part, type):
        yield Entry(part.__name__, part)
        yield from members(part, part in _EXAMPLE_PER_METHOD)
        return
    for name in sorted(part.__all__, key=str.lower):
        value = getattr(part, name)
        yield Entry(name, value)
        if isinstance(value, type):
            yield from members(value, needs_example=False)


def entries() -> list[Entry]:
    """Everything that the page documents."""
    return [entry for _, part in SECTIONS for entry in entries_of(part)]


def undocumented(listed: list[Entry]) -> list[str]:
    """The names without a docstring, or without an example where one is needed."""
    missing = [f"{entry.name} has no docstring" for entry in listed if not entry.docstring]
    return missing + [
        f"{entry.name} has no example" for entry in listed if entry.needs_example and not entry.has_example
    ]


def page() -> str:
    """The whole page."""
    parts = [_HEAD]
    for title, part in SECTIONS:
        intro = "" if isinstance(part, type) else f"\n{_first_sentence(part)}\n"
        parts.append(f"## {title}\n{intro}")
        parts += [_section(entry) for entry in entries_of(part)]
    return "\n".join(parts)


def _section(entry: Entry) -> str:
    if "." in entry.name and not entry.needs_example:
        first, _, rest = _text(entry.docstring).partition("\n")
        return f"- `{entry.heading}`: {first}{rest and chr(10) + textwrap.indent(rest, '  ')}\n"
    parts = [f"### `{entry.heading}`", "", _text(entry.docstring), ""]
    if isinstance(entry.value, type) and (listed := fields(entry.value)):
        parts += [listed, ""]
    if example := _example(entry.docstring):
        parts += ["```python", example, "```", ""]
    return "\n".join(parts)


def fields(owner: type) -> str:
    """The fields of a dataclass with type, default and meaning, as a list."""
    if "__dataclass_fields__" not in vars(owner):
        return ""
    (node,) = ast.parse(textwrap.dedent(inspect.getsource(owner))).body
    assert isinstance(node, ast.ClassDef)
    lines = []
    for statement, following in zip(node.body, [*node.body[1:], None], strict=True):
        if isinstance(statement, ast.AnnAssign) and not str(getattr(statement.target, "id", "_")).startswith("_"):
            lines.append(f"- `{_field(statement)}`{_meaning(statement, following)}")
    return "\n".join(lines)


def _field(statement: ast.AnnAssign) -> str:
    declared = f"{ast.unparse(statement.target)}: {ast.unparse(statement.annotation)}"
    value = statement.value
    if isinstance(value, ast.Call):
        if ast.unparse(value.func) != "setting":  # field(default_factory=dict)
            return declared
        value = value.args[0]
    return declared if value is None else f"{declared} = {ast.unparse(value)}"


def _meaning(statement: ast.AnnAssign, following: ast.stmt | None) -> str:
    """What a field is: the string below it, or the help text of a setting."""
    value = statement.value
    if isinstance(value, ast.Call) and ast.unparse(value.func) == "setting":
        return f": {ast.literal_eval(value.args[1])}"
    if isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant):
        return ": " + " ".join(str(following.value.value).split())
    return ""


def _signature(function: Any) -> str:
    signature = inspect.signature(function)
    own = [parameter for name, parameter in signature.parameters.items() if name not in ("self", "cls")]
    return _plain(str(signature.replace(parameters=own)))


def _plain(text: Any) -> str:
    """A signature without the quotes of annotations that are not evaluated, and without addresses in memory."""
    bare = re.sub(r"(: |-> )'([^']*)'", r"\1\2", str(text))
    return re.sub(r"<function (\w+) at 0x\w+>", r"\1", bare)


def _first_sentence(module: ModuleType) -> str:
    return str(module.__doc__).strip().splitlines()[0]


def _text(docstring: str) -> str:
    """A docstring without its examples, with its arguments as a list."""
    prose, _, arguments = "\n".join(_lines(docstring, example=False)).partition("Args:\n")
    listed = re.sub(r"^ {4}(\*{0,2}\w+):", r"- `\1`:", arguments, flags=re.MULTILINE)
    return f"{prose.strip()}\n\n{listed.strip()}".strip()


def _example(docstring: str) -> str:
    return "\n".join(_lines(docstring, example=True)).strip().replace("  # doctest: +SKIP", "")


def _lines(docstring: str, example: bool) -> Iterator[str]:
    """The lines of a docstring within its examples, or outside of them; an example ends with an empty line."""
    inside = False
    for line in docstring.splitlines():
        inside = line.startswith(">>>") or (inside and bool(line.strip()))
        if inside == example:
            yield line


if __name__ == "__main__":
    PAGE.write_text(page())
