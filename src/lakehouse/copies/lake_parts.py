"""The parts of a lake that a backup copies, and the names of their files in a copy."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from lakehouse.core.catalog import Catalog
from lakehouse.core.dataclass import dataclass
from lakehouse.core.files import Files
from lakehouse.core.format import TableFormat
from lakehouse.formats.iceberg.references import normalized
from lakehouse.storage.tree import LocalTree, Tree

#: Below the warehouse: copies of files that were outside the warehouse of their lake.
EXTERNAL = "_external"
WAREHOUSE, RAW, HOME = "warehouse/", "raw/", "home/"


@dataclass(frozen=True)
class LakeParts:
    """What a backup reads and a restore writes."""

    catalog: Catalog
    files: Files
    formats: Sequence[TableFormat]
    warehouse: Tree
    home: Path
    raw: Tree
    """The source files of pipelines."""
    kind: str = "sql"
    """The kind of the catalog."""

    @property
    def names(self) -> FileNames:
        return FileNames(self.warehouse.uri)

    @property
    def has_hudi(self) -> bool:
        """Whether Hudi tables are found by their folders in the warehouse."""
        return isinstance(self.warehouse, LocalTree)

    def place_of(self, name: str) -> tuple[Tree, str]:
        """Return the tree of a copied file, and its name there."""
        if name.startswith(WAREHOUSE):
            return self.warehouse, name.removeprefix(WAREHOUSE)
        if name.startswith(RAW):
            return self.raw, name.removeprefix(RAW)
        return LocalTree(self.home), name.removeprefix(HOME)

    def source_of(self, name: str) -> tuple[Tree, str]:
        """Return the tree of a file of this lake, and its name there; the file may be outside the warehouse."""
        if name.startswith(f"{WAREHOUSE}{EXTERNAL}/"):
            return self.warehouse.at(external_uri(name))
        return self.place_of(name)


def external_uri(name: str) -> str:
    """Return the original URI of a file from outside the warehouse."""
    scheme, _, path = name.removeprefix(WAREHOUSE).removeprefix(f"{EXTERNAL}/").partition("/")
    return f"file:///{path}" if scheme == "file" else f"{scheme}://{path}"


@dataclass(frozen=True)
class FileNames:
    """Names of files relative to a warehouse, so that a file has the same name wherever the warehouse is."""

    warehouse: str

    def of(self, uri: str) -> str:
        """Return the name of a file; one outside the warehouse gets a name of its own."""
        whole, base = normalized(uri), self.warehouse + "/"
        # In a restored lake, a file that was outside the warehouse is below it.
        if whole.startswith(base):
            return whole.removeprefix(base)
        scheme, _, path = whole.partition("://")
        return f"{EXTERNAL}/{scheme}/{path.lstrip('/')}"

    def uri(self, name: str) -> str:
        """Return the location of a file."""
        return f"{self.warehouse}/{name}"
