"""Create and change Iceberg tables without Spark, through PyIceberg."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from lakehouse.core.names import TableName
from lakehouse.core.properties import new_table_properties
from lakehouse.core.tables import Column, split_arguments
from lakehouse.tables.write import needs_spark

if TYPE_CHECKING:
    from pyiceberg.schema import Schema

_DECIMAL = re.compile(r"decimal\((\d+),\s*(\d+)\)")


class NativeTables:
    """The tables of one branch of a catalog that PyIceberg can reach."""

    def __init__(self, catalog: str, properties: Mapping[str, str]) -> None:
        self._catalog, self._properties = catalog, properties

    def create(self, name: TableName, columns: Sequence[Column], properties: Mapping[str, str]) -> None:
        """Create an unpartitioned table."""
        schema = _schema(columns)
        with self._opened() as catalog:
            catalog.create_namespace_if_not_exists(name.namespace)
            catalog.create_table(
                (name.namespace, name.table), schema, properties={**new_table_properties(), **properties}
            )

    def register(self, name: TableName, metadata: str) -> None:
        """Add a table with an existing metadata file."""
        with self._opened() as catalog:
            catalog.create_namespace_if_not_exists(name.namespace)
            catalog.register_table((name.namespace, name.table), metadata)

    def change(
        self, name: TableName, added: Sequence[Column], widened: Sequence[Column], properties: Mapping[str, str]
    ) -> None:
        """Add and widen columns and set properties, in one commit."""
        with self._opened() as catalog:
            table = catalog.load_table((name.namespace, name.table))
            with table.transaction() as transaction:
                if added or widened:
                    with transaction.update_schema() as update:
                        for column in added:
                            update.add_column(column.name, _type(column.type), column.comment or None)
                        for column in widened:
                            update.update_column(column.name, _type(column.type))
                if properties:
                    transaction.set_properties(dict(properties))

    @contextmanager
    def _opened(self) -> Iterator[Any]:
        from pyiceberg.catalog import load_catalog

        with load_catalog(self._catalog, **self._properties) as catalog:
            yield catalog


def _schema(columns: Sequence[Column]) -> Schema:
    from pyiceberg.schema import Schema
    from pyiceberg.types import NestedField

    return Schema(
        *(
            NestedField(number, column.name, _type(column.type), required=False, doc=column.comment or None)
            for number, column in enumerate(columns, start=1)
        )
    )


def _type(kind: str) -> Any:
    """The Iceberg type of a Spark type."""
    from pyiceberg import types

    plain: dict[str, Any] = {
        "boolean": types.BooleanType(),
        "tinyint": types.IntegerType(),
        "smallint": types.IntegerType(),
        "int": types.IntegerType(),
        "bigint": types.LongType(),
        "float": types.FloatType(),
        "double": types.DoubleType(),
        "string": types.StringType(),
        "binary": types.BinaryType(),
        "date": types.DateType(),
        "timestamp": types.TimestamptzType(),
        "timestamp_ntz": types.TimestampType(),
    }
    if kind in plain:
        return plain[kind]
    head, _, inside = kind.partition("<")
    parts = split_arguments(inside.removesuffix(">"))
    # The catalog numbers all fields of a new table anew, and an update those that it adds.
    match head:
        case "array":
            return types.ListType(1, _type(parts[0]), element_required=False)
        case "map":
            return types.MapType(1, _type(parts[0]), 2, _type(parts[1]), value_required=False)
        case "struct":
            pairs = enumerate((part.partition(":") for part in parts), start=1)
            return types.StructType(
                *(types.NestedField(number, name, _type(part), required=False) for number, (name, _, part) in pairs)
            )
    if decimal := _DECIMAL.fullmatch(kind):
        return types.DecimalType(int(decimal[1]), int(decimal[2]))
    raise needs_spark(f"A column of the type {kind}")
