"""Drafts a semantic layer from the schemas, keys and comments of tables; and writes one as TOML for people to edit."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from lakehouse.agent.semantics import BOOLEAN, KEY, NUMBER, TEXT, TIME, Dimension, Entity, Join, Semantics, parse
from lakehouse.agent.words import phrase
from lakehouse.core.names import REJECTED_SUFFIX
from lakehouse.core.tables import TableInfo

_NUMBERS = ("tinyint", "smallint", "int", "bigint", "float", "double", "decimal")
_INTEGERS = ("tinyint", "smallint", "int", "bigint")
_KEY_ENDS = ("_id", "_code", "_number", "_no", "_zip", "_key")
#: Columns that pipelines add for themselves.
_BOOKKEEPING = ("ingested_at", "updated_at", "modified_at", "loaded_at", "file_modified_at", "changed_at", "synced_at")
_PREFIXES = ("stg_", "fct_", "dim_", "fact_")
#: Names of columns whose values are added up by everybody.
_ADDITIVE = ("revenue", "sale", "amount", "quantity", "qty", "volume", "cost", "profit")


def draft(tables: Sequence[TableInfo], descriptions: Mapping[str, str] | None = None) -> Semantics:
    """A layer of these tables.

    Args:
        descriptions: what one row of a table is, by the table's name.
    """
    readable = [info for info in tables if not info.problem and not info.name.table.endswith(REJECTED_SUFFIX)]
    short = [_short_name(info) for info in readable]
    entities = {}
    for info, name in zip(readable, short, strict=True):
        unique = name if short.count(name) == 1 else str(info.name)
        entities[unique] = _entity(info, unique, name, (descriptions or {}).get(str(info.name), ""))
    joins = tuple(_joins(entities))
    for join in joins:
        entity = entities[join.entity]
        # Nobody adds up what refers to something.
        referring = replace(entity.dimensions[join.column], kind=KEY, aggregate="")
        kept = referring if entity.dimensions[join.column].kind == NUMBER else entity.dimensions[join.column]
        entities[join.entity] = replace(entity, dimensions={**entity.dimensions, join.column: kept})
    return Semantics(entities, joins)


def shipped() -> Semantics:
    """The layers that the pipelines of this package come with."""
    layer = Semantics()
    for file in sorted((Path(__file__).parents[1] / "pipelines").glob("*/semantics.toml")):
        layer = layer.merged(parse(file.read_text(), file.parent.name + "/" + file.name))
    return layer


def describe(dbt_project: Path, tables: Collection[str]) -> dict[str, str]:
    """The descriptions of tables in the schema files of a dbt project, which name models without a namespace."""
    import yaml

    described: dict[str, str] = {}
    for file in sorted((*dbt_project.glob("models/**/*.yml"), *dbt_project.glob("models/**/*.yaml"))):
        try:
            content = yaml.safe_load(file.read_text())
        except (OSError, UnicodeDecodeError, yaml.YAMLError):
            continue  # dbt itself says what is wrong with it
        models = content.get("models", []) if isinstance(content, dict) else []
        for model in models if isinstance(models, list) else []:
            name, text = (
                (str(model.get(part, "")) for part in ("name", "description")) if isinstance(model, dict) else ("", "")
            )
            described |= {table: " ".join(text.split()) for table in tables if text and table.endswith(f".{name}")}
    return described


def _short_name(info: TableInfo) -> str:
    name = info.name.table
    for prefix in _PREFIXES:
        name = name.removeprefix(prefix)
    return name


def _entity(info: TableInfo, name: str, short: str, description: str) -> Entity:
    drafted = [_dimension(column.name, column.type, column.comment, column.name in info.key) for column in info.columns]
    dimensions = {dimension.name: dimension for dimension in drafted if dimension.kind}
    synonyms = tuple(dict.fromkeys(other for other in (short, info.name.table) if other != name))
    return Entity(
        name, str(info.name), synonyms, description, _time(info, dimensions), info.key, {}, dimensions, is_draft=True
    )


@lru_cache(maxsize=5_000)  # tables of one lake have columns in common
def _dimension(name: str, type_: str, comment: str, is_key: bool) -> Dimension:
    words, kind = phrase(name), _kind(name, type_, is_key)
    synonyms = () if phrase(comment) == words or len(comment) > 30 else (comment,)
    aggregate = "sum" if kind == NUMBER and words and words[-1] in _ADDITIVE and "avg" not in words else ""
    return Dimension(
        name,
        kind=kind,
        synonyms=tuple(text for text in synonyms if text.replace(" ", "").isalpha()),
        description=comment,
        aggregate=aggregate,
        type=type_,
    )


def _kind(name: str, type_: str, is_key: bool) -> str:
    """What a column holds; empty for nested ones, about which questions cannot be asked."""
    base = type_.partition("(")[0]
    if base in ("date", "timestamp", "timestamp_ntz"):
        return TIME
    if base == "boolean":
        return BOOLEAN
    if base in _NUMBERS:
        refers = name == "id" or name.endswith(_KEY_ENDS) or is_key
        return KEY if refers and base in _INTEGERS else NUMBER
    return TEXT if base in ("string", "varchar", "char") else ""


def _time(info: TableInfo, dimensions: Mapping[str, Dimension]) -> str:
    times = [name for name, dimension in dimensions.items() if dimension.kind == TIME and name not in _BOOKKEEPING]
    if len(times) == 1:
        return times[0]
    partitioned = [
        name for name in times if any(name in (part, part[part.find("(") + 1 : -1]) for part in info.partitioning)
    ]
    return partitioned[0] if len(partitioned) == 1 else ""


def _joins(entities: Mapping[str, Entity]) -> Iterator[Join]:
    """A column that is named after an entity with a key of one column, and has its type, refers to it."""
    targets: dict[str, list[Entity]] = {}
    for entity in entities.values():
        if len(entity.key) == 1 and entity.key[0] in entity.dimensions:
            noun = "_".join(phrase(entity.synonyms[0] if "." in entity.name else entity.name))
            for column in {noun, f"{noun}_id", f"{noun}_{entity.key[0]}"}:
                targets.setdefault(column, []).append(entity)
    for entity in entities.values():
        for dimension in entity.dimensions.values():
            referred = [other for other in targets.get(dimension.name, []) if other.table != entity.table]
            near = [other for other in referred if other.table.split(".")[0] == entity.table.split(".")[0]] or referred
            if len(near) == 1 and _same_type(dimension, near[0].dimensions[near[0].key[0]]):
                yield Join(entity.name, dimension.name, near[0].name, near[0].key[0])


def _same_type(left: Dimension, right: Dimension) -> bool:
    return left.type == right.type or (left.type in _INTEGERS and right.type in _INTEGERS)


def to_toml(layer: Semantics) -> str:
    """A layer as TOML, to be edited."""
    lines = [
        "# What the words of questions mean in this lake. docs/ask.md explains it; `lake semantics check` checks it."
    ]
    for entity in layer.entities.values():
        place = f"entities.{_toml_key(entity.name)}"
        lines += [
            "",
            f"[{place}]",
            *_pairs(table=entity.table, description=entity.description, synonyms=entity.synonyms),
        ]
        lines += _pairs(time=entity.time, key=entity.key)
        for metric in entity.metrics.values():
            lines += ["", f"[{place}.metrics.{_toml_key(metric.name)}]", *_pairs(expression=metric.expression)]
            lines += _pairs(
                filter=metric.filter, synonyms=metric.synonyms, unit=metric.unit, description=metric.description
            )
        for dimension in entity.dimensions.values():
            lines += ["", f"[{place}.dimensions.{_toml_key(dimension.name)}]", *_pairs(expression=dimension.expression)]
            lines += _pairs(kind=dimension.kind, synonyms=dimension.synonyms, description=dimension.description)
            lines += _pairs(unit=dimension.unit, aggregate=dimension.aggregate)
            if dimension.values:
                values = ", ".join(
                    f"{_toml_key(word)} = {json.dumps(value)}" for word, value in dimension.values.items()
                )
                lines.append(f"values = {{ {values} }}")
    for join in layer.joins:
        ends = f"{join.entity}.{join.column}", f"{join.to_entity}.{join.to_column}"
        lines += ["", "[[joins]]", f"from = {json.dumps(ends[0])}", f"to = {json.dumps(ends[1])}"]
    return "\n".join(lines) + "\n"


def _pairs(**values: str | Sequence[str]) -> list[str]:
    return [
        f"{name} = {json.dumps(value if isinstance(value, str) else list(value), ensure_ascii=False)}"
        for name, value in values.items()
        if value
    ]


def _toml_key(name: str) -> str:
    return name if name.replace("_", "").replace("-", "").isalnum() and name.isascii() else json.dumps(name)
