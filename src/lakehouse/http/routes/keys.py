"""API keys, for admins."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal

from fastapi import Path
from pydantic import BaseModel, Field

from lakehouse.http.answers import plain
from lakehouse.http.keys import KeyRequest
from lakehouse.http.registry import Routes
from lakehouse.http.service import CallContext

routes = Routes("keys")
KeyId = Annotated[str, Path(description="The id of a key, its first part.", max_length=100)]


class KeyBody(BaseModel):
    """A new key."""

    scope: Literal["reader", "writer", "admin", "agent"] = "reader"
    name: str = Field("", max_length=200)
    namespaces: list[str] = Field(default_factory=list, max_length=100)
    branches: list[str] = Field(default_factory=list, max_length=100)
    days: float | None = Field(None, gt=0, le=36_500, description="Days until it expires (default: never).")

    model_config = {"extra": "forbid", "json_schema_extra": {"example": {"scope": "reader", "name": "dashboards"}}}


@routes.operation()
def keys(call: CallContext) -> dict[str, Any]:
    """List the keys, without their secrets."""
    call.principal.check_everywhere("The list of keys")
    return {"keys": [plain(key.shown()) for key in call.service.keys.all()]}


@routes.operation(status_code=201)
def create_key(call: CallContext, body: KeyBody) -> dict[str, Any]:
    """Create a key; its text is in this answer and nowhere else."""
    call.principal.check_everywhere("Creating keys")
    expires = None if body.days is None else datetime.now(UTC) + timedelta(days=body.days)
    request = KeyRequest(body.scope, body.name, body.namespaces, body.branches, expires)
    key, text = call.service.keys.create(request)
    return {**plain(key.shown()), "key": text}


@routes.operation()
def revoke_key(call: CallContext, key_id: KeyId) -> Any:
    """Revoke a key: it is refused from now on."""
    call.principal.check_everywhere("Revoking keys")
    return plain(call.service.keys.revoke(key_id).shown())


@routes.operation()
def rotate_key(call: CallContext, key_id: KeyId) -> dict[str, Any]:
    """Revoke a key and create one with the same rights."""
    call.principal.check_everywhere("Rotating keys")
    key, text = call.service.keys.rotate(key_id)
    return {**plain(key.shown()), "key": text}
