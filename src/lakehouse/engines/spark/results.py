"""The rows of a Spark query as Arrow or as plain Python values, with timestamps in UTC."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC
from typing import TYPE_CHECKING, Any

from lakehouse.core.result import ArrowRows, Explain, ListedRows, Result, Row
from lakehouse.core.tables import Column

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType, StructType


def to_result(frame: DataFrame, reason: str, arrow: bool) -> Result:
    """Run the query and fetch its rows."""
    columns = tuple(Column(field.name, field.dataType.simpleString()) for field in frame.schema.fields)
    explain = Explain("spark", reason)
    frame = with_arrow_types(frame)
    if arrow:
        return Result(columns, ArrowRows(_to_arrow(frame)), explain)
    try:
        rows = _collected(frame)
    except (OverflowError, ValueError):  # a date or time that PySpark cannot make, 0001-01-01 among them
        return Result(columns, ArrowRows(_to_arrow(frame)), explain)
    return Result(columns, ListedRows([column.name for column in columns], rows), explain)


def with_arrow_types(frame: DataFrame) -> DataFrame:
    """The frame with values that PySpark has and types that Arrow has.

    Intervals of years become their number of months, and `array()` and `map()`, whose elements are void, hold integers.
    """
    from pyspark.sql import functions as F
    from pyspark.sql.types import YearMonthIntervalType

    kinds = [field.dataType for field in frame.schema.fields]
    held = [_without_void(kind) for kind in kinds]
    if kinds == held and not any(isinstance(kind, YearMonthIntervalType) for kind in kinds):
        return frame
    numbered = frame.toDF(*(f"c{number}" for number in range(len(kinds))))  # names may occur twice
    columns = []
    for number, (kind, to) in enumerate(zip(kinds, held, strict=True)):
        if isinstance(kind, YearMonthIntervalType):
            column = F.expr(f"cast(cast(c{number} as interval month) as int)")
        else:
            column = F.col(f"c{number}") if kind == to else F.col(f"c{number}").cast(to)
        columns.append(column.alias(frame.schema.fields[number].name))
    return numbered.select(*columns)


def _without_void(kind: DataType) -> DataType:
    """The type with integers in place of the void within arrays, maps and structs."""
    from pyspark.sql import types as T

    def held(part: DataType) -> DataType:
        return T.IntegerType() if isinstance(part, T.NullType) else _without_void(part)

    if isinstance(kind, T.ArrayType):
        return T.ArrayType(held(kind.elementType), kind.containsNull)
    if isinstance(kind, T.MapType):
        return T.MapType(held(kind.keyType), held(kind.valueType), kind.valueContainsNull)
    if isinstance(kind, T.StructType):
        return T.StructType([T.StructField(f.name, held(f.dataType), f.nullable, f.metadata) for f in kind.fields])
    return kind


def _to_arrow(frame: DataFrame) -> Any:
    """The frame as an Arrow table with Spark's types; toPandas would turn integers with nulls into floats."""
    import pyarrow

    schema = arrow_schema(frame.schema)
    collect = getattr(frame, "_collect_as_arrow", None)  # the public toArrow() comes with Spark 4
    if collect is not None:
        return pyarrow.Table.from_batches(collect(), schema=schema)
    # A Spark Connect client of 3.5 has neither.
    rows = _collected(frame)
    return pyarrow.table([[row[index] for row in rows] for index in range(len(schema))], schema=schema)


def arrow_schema(schema: StructType) -> pyarrow.Schema:
    """The schema of a frame in Arrow, with UTC in its timestamps: the session's time zone, which is always UTC here."""
    import pyarrow
    from pyspark.sql.pandas.types import to_arrow_schema

    fields = [
        field.with_type(pyarrow.timestamp("us", tz="UTC"))
        if pyarrow.types.is_timestamp(field.type) and field.type.tz
        else field
        for field in to_arrow_schema(schema)
    ]
    return pyarrow.schema(fields)


def _collected(frame: DataFrame) -> list[Row]:
    """The rows as plain Python: nested rows as dicts, timestamps in UTC, which PySpark returns as naive local times."""
    converters = [_converter(field.dataType) for field in frame.schema.fields]
    return [
        tuple(
            value if value is None or convert is None else convert(value)
            for value, convert in zip(row, converters, strict=True)
        )
        for row in frame.collect()
    ]


def _converter(kind: DataType) -> Callable[[Any], Any] | None:
    """What makes a plain value of one of PySpark's; None if it is plain already."""
    from pyspark.sql import types as T

    if isinstance(kind, T.TimestampType):
        return lambda value: value.astimezone(UTC)
    if isinstance(kind, T.ArrayType) and (element := _converter(kind.elementType)):
        return lambda values: [value if value is None else element(value) for value in values]
    if isinstance(kind, T.MapType):
        key, item = (_converter(part) or _same for part in (kind.keyType, kind.valueType))
        return lambda values: {key(name): value if value is None else item(value) for name, value in values.items()}
    if isinstance(kind, T.StructType):
        fields = {field.name: _converter(field.dataType) or _same for field in kind.fields}
        return lambda row: {
            name: value if value is None else fields[name](value) for name, value in row.asDict().items()
        }
    return None


def _same(value: Any) -> Any:
    return value
