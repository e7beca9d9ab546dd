"""A client of Nessie's API v2 with the calls that a catalog needs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from lakehouse.core.dataclass import dataclass
from lakehouse.core.errors import (
    BadSettingError,
    CatalogAccessError,
    CatalogError,
    CatalogUnreachableError,
    NoSuchBranchError,
)
from lakehouse.process.http_client import HttpRequest, NoAnswerError, send

Key = tuple[str, ...]
Content = Mapping[str, Any]

_TIMEOUT_S = 60
_PAGE = 500
_DENIED = (401, 403)


class Conflict(Exception):
    """Another client changed what a commit would change, or created what it would create."""

    def __init__(self, message: str, keys: Sequence[Key] = ()) -> None:
        self.keys = tuple(keys)
        super().__init__(message)


@dataclass(frozen=True)
class Reference:
    """A branch or a tag, and the commit that it is at."""

    name: str
    hash: str
    type: str = "BRANCH"
    base: str = field(default="", compare=False)
    """The commit that it was created from, if requested."""

    @property
    def at(self) -> str:
        """Return the path segment that names exactly this state."""
        return f"{self.name}@{self.hash}"


class NessieApi:
    """One Nessie server.

    Args:
        uri: the address of its API v2, such as `http://127.0.0.1:19120/api/v2`.
        token: the bearer token, if it requires one.
    """

    def __init__(self, uri: str, token: str = "") -> None:
        self.uri, self.token, self._empty_hash = uri.rstrip("/"), token, ""
        address = urlsplit(self.uri)
        if address.scheme not in ("http", "https") or not address.hostname or address.username:
            raise BadSettingError(
                "catalog.uri is not the address of a Nessie server.", "Write it as http://127.0.0.1:19120/api/v2."
            )

    # ---- references ---------------------------------------------------------------------------------------------

    def empty_hash(self) -> str:
        """Return the hash of a branch without any commit."""
        if not self._empty_hash:
            self._empty_hash = str(self._call("GET", "config")["noAncestorHash"])
        return self._empty_hash

    def references(self) -> Iterator[Reference]:
        """Yield every branch and tag."""
        for reference in self._pages("trees", "references"):
            yield Reference(reference["name"], reference["hash"], reference["type"])

    def find(self, name: str, *, with_base: bool = False) -> Reference | None:
        """Return a branch or tag by its name; None if there is none."""
        query = {"fetch": "ALL"} if with_base else {}
        try:
            reference = self._call("GET", f"trees/{quote(name, safe='')}", query)["reference"]
        except NoSuchBranchError:
            return None
        base = (reference.get("metadata") or {}).get("commonAncestorHash") or ""
        return Reference(reference["name"], reference["hash"], reference["type"], base)

    def create(self, name: str, kind: str, source: Reference) -> Reference:
        """Create a branch or tag; Conflict if the name is taken."""
        body = {"type": source.type, "name": source.name, "hash": source.hash}
        created = self._call("POST", "trees", {"name": name, "type": kind}, body)["reference"]
        return Reference(created["name"], created["hash"], created["type"])

    def delete(self, reference: Reference) -> bool:
        """Delete a branch or tag; Conflict if it has changed since it was read, False if it does not exist."""
        try:
            self._call("DELETE", f"trees/{reference.at}", {"type": reference.type})
        except NoSuchBranchError:
            return False
        return True

    def assign(self, reference: Reference, target: Reference) -> None:
        """Let a branch be at the commit of another one; Conflict if it has changed since it was read."""
        body = {"type": target.type, "name": target.name, "hash": target.hash}
        self._call("PUT", f"trees/{reference.at}", {"type": reference.type}, body)

    # ---- contents -----------------------------------------------------------------------------------------------

    def contents(self, at: str, keys: Iterable[Key]) -> tuple[dict[Key, Content], str]:
        """Return the contents of those keys that exist, all from one commit, and that commit."""
        body = {"requestedKeys": [_key(key) for key in keys]}
        response = self._call("POST", f"trees/{at}/contents", {}, body)
        contents = {tuple(entry["key"]["elements"]): entry["content"] for entry in response["contents"]}
        return contents, str(response["effectiveReference"]["hash"])

    def entries(self, at: str, prefix: str = "") -> Iterator[tuple[Key, Content]]:
        """Yield all contents of a reference, or those whose keys start with a prefix."""
        only = {"min-key": prefix, "max-key": f"{prefix}~"} if prefix else {}
        for entry in self._pages(f"trees/{at}/entries", "entries", {"content": "true", **only}):
            yield tuple(entry["name"]["elements"]), entry["content"]

    def diff(self, start: str, end: str) -> Iterator[tuple[Key, Content | None, Content | None]]:
        """Yield the contents that differ between two states."""
        for entry in self._pages(f"trees/{start}/diff/{end}", "diffs"):
            yield tuple(entry["key"]["elements"]), entry.get("from"), entry.get("to")

    def history(self, at: str, only: str = "") -> Iterator[Mapping[str, Any]]:
        """Yield commits with their operations, newest first; `only` is a CEL filter."""
        yield from self._pages(
            f"trees/{at}/history", "logEntries", {"fetch": "ALL", **({"filter": only} if only else {})}, page=100
        )

    # ---- changes ------------------------------------------------------------------------------------------------

    def commit(self, at: Reference, meta: Mapping[str, Any], operations: Sequence[Mapping[str, Any]]) -> str:
        """Commit and return the new hash; Conflict if any of the keys has changed since `at`."""
        body = {"commitMeta": meta, "operations": operations}
        response = self._call("POST", f"trees/{at.at}/history/commit", {}, body)
        return str(response["targetBranch"]["hash"])

    def merge(
        self, into: Reference, source: Reference, meta: Mapping[str, Any] | None, *, dry_run: bool = False
    ) -> str:
        """Merge all changes of a branch in one commit and return its hash; Conflict if both branches changed a key."""
        body: dict[str, Any] = {"fromRefName": source.name, "fromHash": source.hash, "isReturnConflictAsResult": True}
        if meta:
            body["commitMeta"] = meta
        if dry_run:
            body["isDryRun"] = True  # Nessie ignores `dryRun` and would merge
        response = self._call("POST", f"trees/{into.at}/history/merge", {}, body)
        if not response["wasSuccessful"]:
            keys = [tuple(detail["key"]["elements"]) for detail in response["details"] if detail.get("conflict")]
            raise Conflict("the merge has conflicts", keys)
        return str(response.get("resultantTargetHash") or "")

    # ---- HTTP ---------------------------------------------------------------------------------------------------

    def _pages(
        self, path: str, list_of: str, query: Mapping[str, str] | None = None, page: int = _PAGE
    ) -> Iterator[Mapping[str, Any]]:
        parameters = {**(query or {}), "max-records": str(page)}
        while True:
            response = self._call("GET", path, parameters)
            yield from response[list_of]
            if not response.get("hasMore"):
                return
            parameters["page-token"] = response["token"]

    def _call(
        self, method: str, path: str, query: Mapping[str, str] | None = None, body: object = None
    ) -> dict[str, Any]:
        status, text = self._send(method, path + (f"?{urlencode(query)}" if query else ""), body)
        try:
            payload = json.loads(text or b"{}")
        except ValueError:
            payload = None
        if not isinstance(payload, dict):
            raise CatalogError(
                f"The server at {self.uri} is not Nessie (status {status}).", "Check catalog.uri: lake config show"
            )
        if status < 300:
            return payload
        raise self._error(status, str(payload.get("errorCode", "")), str(payload.get("message", "")))

    def _send(self, method: str, path: str, body: object) -> tuple[int, bytes]:
        headers = {"Accept": "application/json", "Content-Type": "application/json"}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        content = None if body is None else json.dumps(body).encode()
        # Without proxies: the server is most often on this machine.
        request = HttpRequest(f"{self.uri}/{path}", method, content, headers, _TIMEOUT_S, proxies=False)
        try:
            response = send(request)
        except NoAnswerError as exc:
            raise CatalogUnreachableError(
                f"Nessie does not answer at {self.uri}: {exc.reason}.",
                "Start it: lake up nessie (lake status shows what runs). Another address: catalog.uri.",
            ) from exc
        return response.status, response.body

    def _error(self, status: int, code: str, message: str) -> Exception:
        if status in _DENIED:
            return CatalogAccessError(
                f"Nessie at {self.uri} denies access (status {status}).",
                "Set catalog.token (LAKE_CATALOG__TOKEN) to a valid token.",
            )
        # Nessie reports a key that another client created or removed at the same time as a wrong content ID.
        if status == 409 or (code == "BAD_REQUEST" and "content ID" in message):
            return Conflict(message)
        if code == "REFERENCE_NOT_FOUND":
            return NoSuchBranchError(f"{message.rstrip('.')}.", "All of them: lake branch list, lake tag list")
        return CatalogError(f"Nessie at {self.uri} refused (status {status}): {message[:500]}", "lake logs nessie")


def _key(key: Key) -> dict[str, list[str]]:
    return {"elements": list(key)}


def put(key: Key, content: Content) -> dict[str, Any]:
    """Return the operation that sets the content of a key. New content has no id; replaced content keeps its id."""
    return {"type": "PUT", "key": _key(key), "content": content}


def remove(key: Key) -> dict[str, Any]:
    """Return the operation that removes a key."""
    return {"type": "DELETE", "key": _key(key)}
