"""A view's next metadata. PyIceberg has the models of views but applies no updates to them; the rules are Iceberg's."""

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

from lakehouse.rest_catalog.problems import CommitFailed, Problem

_LAST_ADDED = -1
_KEPT_VERSIONS = ("version.history.num-entries", 10)
_MAY_LOSE_DIALECTS = "replace.drop-dialect.allowed"


class AddViewVersionUpdate(IcebergBaseModel):  # type: ignore[misc] # PyIceberg's types are not read
    """One more definition of the view."""

    action: Literal["add-view-version"] = Field(default="add-view-version")
    view_version: ViewVersion = Field(alias="view-version")


class SetCurrentViewVersionUpdate(IcebergBaseModel):  # type: ignore[misc] # PyIceberg's types are not read
    """The definition that counts; -1 is the one just added."""

    action: Literal["set-current-view-version"] = Field(default="set-current-view-version")
    view_version_id: int = Field(alias="view-version-id")


class AssertViewUUID(IcebergBaseModel):  # type: ignore[misc] # PyIceberg's types are not read
    """The view must be the one that the change was made from."""

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


class CommitViewRequest(IcebergBaseModel):  # type: ignore[misc] # PyIceberg's types are not read
    """A change of a view."""

    requirements: tuple[AssertViewUUID, ...] = Field(default_factory=tuple)
    updates: tuple[ViewUpdate, ...] = Field(default_factory=tuple)


def check(requirements: Iterable[AssertViewUUID], base: ViewMetadata) -> None:
    """Refuse a change that was made from another view."""
    for requirement in requirements:
        if requirement.uuid != base.view_uuid:
            raise CommitFailed(f"Requirement failed: view UUID does not match: expected {base.view_uuid}")


def new_view(location: str, schema: Schema, version: ViewVersion, properties: dict[str, str]) -> ViewMetadata:
    """The metadata of a view that was not there before."""
    empty = ViewMetadata.model_construct(
        view_uuid=str(uuid.uuid4()),
        format_version=1,
        location=location,
        schemas=[],
        current_version_id=_LAST_ADDED,
        versions=[],
        version_log=[],
        properties={},
    )
    updates = [
        AddSchemaUpdate(schema=schema),
        AddViewVersionUpdate(view_version=version.model_copy(update={"schema_id": _LAST_ADDED})),
        SetCurrentViewVersionUpdate(view_version_id=_LAST_ADDED),
        SetPropertiesUpdate(updates=properties),
    ]
    return changed(empty, updates)


def changed(base: ViewMetadata, updates: Sequence[ViewUpdate]) -> ViewMetadata:
    """The metadata with the updates applied, `base` itself if they change nothing."""
    changing = _Changing(base)
    for update in updates:
        changing.apply(update)
    result = changing.result()
    return base if result == base else result


class _Changing:
    """A view while updates are applied to it."""

    def __init__(self, base: ViewMetadata) -> None:
        self._base = base
        self._facts: dict[str, Any] = {"location": base.location, "view_uuid": base.view_uuid}
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
                self._set_fact(update)

    def _set_fact(self, update: ViewUpdate) -> None:
        match update:
            case AssignUUIDUpdate(uuid=given):
                self._facts["view_uuid"] = str(given)
            case UpgradeFormatVersionUpdate(format_version=given):
                if given != 1:
                    raise Problem(f"Unsupported format version of a view: {given}")
            case SetLocationUpdate(location=given):
                self._facts["location"] = given.rstrip("/")
            case SetPropertiesUpdate(updates=given):
                self._properties |= given
            case RemovePropertiesUpdate(removals=given):
                self._properties = {key: value for key, value in self._properties.items() if key not in given}

    def _add_schema(self, schema: Schema) -> None:
        same = next((each.schema_id for each in self._schemas if each == schema), None)
        if same is None:
            same = max((each.schema_id for each in self._schemas), default=-1) + 1
            self._schemas.append(schema.model_copy(update={"schema_id": same}))
        self._added_schema = same

    def _add_version(self, version: ViewVersion) -> None:
        _check_dialects(version)
        if version.schema_id == _LAST_ADDED:
            if self._added_schema is None:
                raise Problem("Cannot set last added schema: no schema has been added")
            version = version.model_copy(update={"schema_id": self._added_schema})
        if not any(each.schema_id == version.schema_id for each in self._schemas):
            raise Problem(f"Cannot add version with unknown schema: {version.schema_id}")
        same = next((each.version_id for each in self._versions if _definition(each) == _definition(version)), None)
        if same is None:
            same = max([version.version_id - 1, *(each.version_id for each in self._versions)]) + 1
            self._versions.append(version.model_copy(update={"version_id": same}))
        self._added_versions.append(same)

    def _set_current(self, number: int) -> None:
        if number == _LAST_ADDED:
            if not self._added_versions:
                raise Problem("Cannot set last added version: no version has been added")
            number = self._added_versions[-1]
        version = next((each for each in self._versions if each.version_id == number), None)
        if version is None:
            raise Problem(f"Cannot set current version to unknown version: {number}")
        if number == self._current:
            return
        self._current = number
        at = version.timestamp_ms if number in self._added_versions else int(time.time() * 1000)
        self._log.append(ViewHistoryEntry(timestamp_ms=at, version_id=number))

    def result(self) -> ViewMetadata:
        self._refuse_lost_dialects()
        kept = self._kept_versions()
        numbers = {each.version_id for each in kept}
        # What came before a version that is no longer known would be history with a hole.
        hole = max((at for at, entry in enumerate(self._log) if entry.version_id not in numbers), default=-1)
        return self._base.model_copy(
            update={
                **self._facts,
                "properties": self._properties,
                "schemas": self._schemas,
                "versions": kept,
                "version_log": self._log[hole + 1 :],
                "current_version_id": self._current,
            }
        )

    def _kept_versions(self) -> list[ViewVersion]:
        name, default = _KEPT_VERSIONS
        try:
            most = int(self._properties.get(name, default))
        except ValueError as exc:
            raise Problem(f"{name} is not a number") from exc
        if most < 1:
            raise Problem(f"{name} must be positive but was {most}")
        most = max(most, len(set(self._added_versions)))
        newest = sorted((each.version_id for each in self._versions if each.version_id != self._current), reverse=True)
        numbers = {self._current, *newest[: most - 1]}
        return [each for each in self._versions if each.version_id in numbers]

    def _refuse_lost_dialects(self) -> None:
        if self._properties.get(_MAY_LOSE_DIALECTS, "false").lower() == "true" or not self._base.versions:
            return
        by_number = {each.version_id: each for each in [*self._base.versions, *self._versions]}
        before, after = _dialects(by_number[self._base.current_version_id]), _dialects(by_number[self._current])
        if before - after:
            raise Problem(
                "Cannot replace view due to loss of view dialects:"
                f" {', '.join(sorted(before - after))}. Set {_MAY_LOSE_DIALECTS}=true to allow it."
            )


def _dialects(version: ViewVersion) -> set[str]:
    return {each.root.dialect.lower() for each in version.representations}


def _check_dialects(version: ViewVersion) -> None:
    found = set()
    for each in version.representations:
        dialect = each.root.dialect.lower()
        if dialect in found:
            told = f"Invalid view version: Cannot add multiple queries for dialect {dialect}"
            raise Problem(told, kind="IllegalArgumentException")
        found.add(dialect)


def _definition(version: ViewVersion) -> dict[str, Any]:
    told: dict[str, Any] = version.model_dump(exclude={"version_id", "timestamp_ms"})
    return told
