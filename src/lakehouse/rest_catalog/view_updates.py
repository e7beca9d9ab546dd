"""Applies updates to a view's metadata by Iceberg's rules. PyIceberg has models of views but does not apply updates."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Literal

from pydantic import Field
from pyiceberg.schema import Schema
from pyiceberg.table.update import (
    AddSchemaUpdate,
    AssignUUIDUpdate,
    RemovePropertiesUpdate,
    SetLocationUpdate,
    SetPropertiesUpdate,
    UpgradeFormatVersionUpdate,
)
from pyiceberg.typedef import IcebergBaseModel
from pyiceberg.view.metadata import ViewHistoryEntry, ViewMetadata, ViewVersion

from lakehouse.pyiceberg_internals import LAST_ADDED
from lakehouse.rest_catalog.errors import CommitFailedError, RestError

_HISTORY_LIMIT = ("version.history.num-entries", 10)
_ALLOW_DROPPED_DIALECTS = "replace.drop-dialect.allowed"


class AddViewVersionUpdate(IcebergBaseModel):  # type: ignore[misc] # PyIceberg's types are not checked
    """Adds a version of the view."""

    action: Literal["add-view-version"] = Field(default="add-view-version")
    view_version: ViewVersion = Field(alias="view-version")


class SetCurrentViewVersionUpdate(IcebergBaseModel):  # type: ignore[misc] # PyIceberg's types are not checked
    """Sets the current version; -1 is the one added last."""

    action: Literal["set-current-view-version"] = Field(default="set-current-view-version")
    view_version_id: int = Field(alias="view-version-id")


class AssertViewUUID(IcebergBaseModel):  # type: ignore[misc] # PyIceberg's types are not checked
    """Requires that the view has a UUID."""

    type: Literal["assert-view-uuid"] = Field(default="assert-view-uuid")
    uuid: str


ViewUpdate = Annotated[
    AssignUUIDUpdate
    | UpgradeFormatVersionUpdate
    | AddSchemaUpdate
    | SetLocationUpdate
    | SetPropertiesUpdate
    | RemovePropertiesUpdate
    | AddViewVersionUpdate
    | SetCurrentViewVersionUpdate,
    Field(discriminator="action"),
]


class CommitViewRequest(IcebergBaseModel):  # type: ignore[misc] # PyIceberg's types are not checked
    """A commit to a view."""

    requirements: tuple[AssertViewUUID, ...] = Field(default_factory=tuple)
    updates: tuple[ViewUpdate, ...] = Field(default_factory=tuple)


def check(requirements: Iterable[AssertViewUUID], base: ViewMetadata) -> None:
    """Refuse a commit whose requirements do not hold."""
    for requirement in requirements:
        if requirement.uuid != base.view_uuid:
            raise CommitFailedError(f"Requirement failed: view UUID does not match: expected {base.view_uuid}")


def new_view(location: str, schema: Schema, version: ViewVersion, properties: dict[str, str]) -> ViewMetadata:
    """Return the metadata of a new view."""
    empty = ViewMetadata.model_construct(
        view_uuid=str(uuid.uuid4()),
        format_version=1,
        location=location,
        schemas=[],
        current_version_id=LAST_ADDED,
        versions=[],
        version_log=[],
        properties={},
    )
    updates = [
        AddSchemaUpdate(schema=schema),
        AddViewVersionUpdate(view_version=version.model_copy(update={"schema_id": LAST_ADDED})),
        SetCurrentViewVersionUpdate(view_version_id=LAST_ADDED),
        SetPropertiesUpdate(updates=properties),
    ]
    return apply_updates(empty, updates)


def apply_updates(base: ViewMetadata, updates: Sequence[ViewUpdate]) -> ViewMetadata:
    """Return the metadata with updates applied, or `base` itself if they change nothing."""
    builder = _ViewBuilder(base)
    for update in updates:
        builder.apply(update)
    result = builder.build()
    return base if result == base else result


class _ViewBuilder:
    """Collects the updates of a view."""

    def __init__(self, base: ViewMetadata) -> None:
        self._base = base
        self._fields: dict[str, Any] = {"location": base.location, "view_uuid": base.view_uuid}
        self._properties = dict(base.properties)
        self._schemas, self._versions = list(base.schemas), list(base.versions)
        self._log = list(base.version_log)
        self._current = base.current_version_id
        self._added_schema: int | None = None
        self._added_versions: list[int] = []

    def apply(self, update: ViewUpdate) -> None:
        match update:
            case AddSchemaUpdate(schema_=schema):
                self._add_schema(schema)
            case AddViewVersionUpdate(view_version=version):
                self._add_version(version)
            case SetCurrentViewVersionUpdate(view_version_id=number):
                self._set_current(number)
            case _:
                self._set_field(update)

    def _set_field(self, update: ViewUpdate) -> None:
        match update:
            case AssignUUIDUpdate(uuid=value):
                self._fields["view_uuid"] = str(value)
            case UpgradeFormatVersionUpdate(format_version=value):
                if value != 1:
                    raise RestError(f"Unsupported format version of a view: {value}")
            case SetLocationUpdate(location=value):
                self._fields["location"] = value.rstrip("/")
            case SetPropertiesUpdate(updates=value):
                self._properties |= value
            case RemovePropertiesUpdate(removals=value):
                self._properties = {
                    key: property_value for key, property_value in self._properties.items() if key not in value
                }

    def _add_schema(self, schema: Schema) -> None:
        same = next((known.schema_id for known in self._schemas if known == schema), None)
        if same is None:
            same = max((known.schema_id for known in self._schemas), default=-1) + 1
            self._schemas.append(schema.model_copy(update={"schema_id": same}))
        self._added_schema = same

    def _add_version(self, version: ViewVersion) -> None:
        _check_dialects(version)
        if version.schema_id == LAST_ADDED:
            if self._added_schema is None:
                raise RestError("Cannot set last added schema: no schema has been added")
            version = version.model_copy(update={"schema_id": self._added_schema})
        if not any(schema.schema_id == version.schema_id for schema in self._schemas):
            raise RestError(f"Cannot add version with unknown schema: {version.schema_id}")
        same = next((known.version_id for known in self._versions if _definition(known) == _definition(version)), None)
        if same is None:
            same = max([version.version_id - 1, *(known.version_id for known in self._versions)]) + 1
            self._versions.append(version.model_copy(update={"version_id": same}))
        self._added_versions.append(same)

    def _set_current(self, number: int) -> None:
        if number == LAST_ADDED:
            if not self._added_versions:
                raise RestError("Cannot set last added version: no version has been added")
            number = self._added_versions[-1]
        version = next((known for known in self._versions if known.version_id == number), None)
        if version is None:
            raise RestError(f"Cannot set current version to unknown version: {number}")
        if number == self._current:
            return
        self._current = number
        at = version.timestamp_ms if number in self._added_versions else int(time.time() * 1000)
        self._log.append(ViewHistoryEntry(timestamp_ms=at, version_id=number))

    def build(self) -> ViewMetadata:
        self._refuse_dropped_dialects()
        versions = self._limit_versions()
        numbers = {version.version_id for version in versions}
        # The history starts after the last version that was removed, so that it has no gap.
        gap = max((at for at, entry in enumerate(self._log) if entry.version_id not in numbers), default=-1)
        return self._base.model_copy(
            update={
                **self._fields,
                "properties": self._properties,
                "schemas": self._schemas,
                "versions": versions,
                "version_log": self._log[gap + 1 :],
                "current_version_id": self._current,
            }
        )

    def _limit_versions(self) -> list[ViewVersion]:
        name, default = _HISTORY_LIMIT
        try:
            limit = int(self._properties.get(name, default))
        except ValueError as exc:
            raise RestError(f"{name} is not a number") from exc
        if limit < 1:
            raise RestError(f"{name} must be positive but was {limit}")
        limit = max(limit, len(set(self._added_versions)))
        newest = sorted(
            (version.version_id for version in self._versions if version.version_id != self._current), reverse=True
        )
        numbers = {self._current, *newest[: limit - 1]}
        return [version for version in self._versions if version.version_id in numbers]

    def _refuse_dropped_dialects(self) -> None:
        if self._properties.get(_ALLOW_DROPPED_DIALECTS, "false").lower() == "true" or not self._base.versions:
            return
        by_number = {version.version_id: version for version in [*self._base.versions, *self._versions]}
        before, after = _dialects(by_number[self._base.current_version_id]), _dialects(by_number[self._current])
        if before - after:
            raise RestError(
                "Cannot replace view due to loss of view dialects:"
                f" {', '.join(sorted(before - after))}. Set {_ALLOW_DROPPED_DIALECTS}=true to allow it."
            )


def _dialects(version: ViewVersion) -> set[str]:
    return {representation.root.dialect.lower() for representation in version.representations}


def _check_dialects(version: ViewVersion) -> None:
    dialects = set()
    for representation in version.representations:
        dialect = representation.root.dialect.lower()
        if dialect in dialects:
            message = f"Invalid view version: Cannot add multiple queries for dialect {dialect}"
            raise RestError(message, kind="IllegalArgumentException")
        dialects.add(dialect)


def _definition(version: ViewVersion) -> dict[str, Any]:
    definition: dict[str, Any] = version.model_dump(exclude={"version_id", "timestamp_ms"})
    return definition
