"""Nessie's API v2 over plain HTTP: the few calls that a catalog needs, and its answers as plain data or clear errors."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from lakehouse.core.errors import (
    BadSettingError,
    CatalogAccessError,
    CatalogError,
    CatalogUnreachableError,
    NoSuchBranchError,
)

Key = tuple[str, ...]
Content = Mapping[str, Any]

_TIMEOUT_S = 60
_PAGE = 500
_DENIED = (401, 403)


class Conflict(Exception):
    """Somebody else changed what a commit would change, or made what it would make."""

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
    """Where it left main, if that was asked for."""

    @property
    def at(self) -> str:
        """How to name exactly this state in an address."""
        return f"{self.name}@{self.hash}"


class NessieApi:
    """One Nessie server.

    Args:
        uri: the address of its API v2, as `http://127.0.0.1:19120/api/v2`.
        token: what it lets us in by, if it asks.
    """

    def __init__(self, uri: str, token: str = "") -> None:
        self.uri, self.token, self._nothing = uri.rstrip("/"), token, ""
        place = urlsplit(self.uri)
        if place.scheme not in ("http", "https") or not place.hostname or place.username:
            raise BadSettingError(
                "The address of Nessie is none that can be asked.", "Write it as http://127.0.0.1:19120/api/v2."
            )

    # ---- references ---------------------------------------------------------------------------------------------

    def nothing(self) -> str:
        """The hash of a branch without any commit."""
        if not self._nothing:
            self._nothing = str(self._call("GET", "config")["noAncestorHash"])
        return self._nothing

    def references(self) -> Iterator[Reference]:
        """Every branch and tag."""
        for each in self._pages("trees", "references"):
            yield Reference(each["name"], each["hash"], each["type"])

    def find(self, name: str, *, with_base: bool = False) -> Reference | None:
        """A branch or tag by its name; None if there is none."""
        query = {"fetch": "ALL"} if with_base else {}
        try:
            found = self._call("GET", f"trees/{quote(name, safe='')}", query)["reference"]
        except NoSuchBranchError:
            return None
        base = (found.get("metadata") or {}).get("commonAncestorHash") or ""
        return Reference(found["name"], found["hash"], found["type"], base)

    def create(self, name: str, kind: str, source: Reference) -> Reference:
        """A new branch or tag; a Conflict if the name is taken."""
        body = {"type": source.type, "name": source.name, "hash": source.hash}
        made = self._call("POST", "trees", {"name": name, "type": kind}, body)["reference"]
        return Reference(made["name"], made["hash"], made["type"])

    def delete(self, reference: Reference) -> bool:
        """Forget a branch or tag as it was seen; a Conflict if it moved since, False if it is gone."""
        try:
            self._call("DELETE", f"trees/{reference.at}", {"type": reference.type})
        except NoSuchBranchError:
            return False
        return True

    # ---- contents -----------------------------------------------------------------------------------------------

    def contents(self, at: str, keys: Iterable[Key]) -> tuple[dict[Key, Content], str]:
        """What is under some keys at one moment, and the commit of that moment. What is not there is left out."""
        wanted = {"requestedKeys": [_key(key) for key in keys]}
        told = self._call("POST", f"trees/{at}/contents", {}, wanted)
        found = {tuple(each["key"]["elements"]): each["content"] for each in told["contents"]}
        return found, str(told["effectiveReference"]["hash"])

    def entries(self, at: str, prefix: str = "") -> Iterator[tuple[Key, Content]]:
        """Everything on a reference, or what begins with a plain text; all of it from one commit if `at` names one."""
        only = {"min-key": prefix, "max-key": f"{prefix}~"} if prefix else {}
        for each in self._pages(f"trees/{at}/entries", "entries", {"content": "true", **only}):
            yield tuple(each["name"]["elements"]), each["content"]

    def diff(self, start: str, end: str) -> Iterator[tuple[Key, Content | None, Content | None]]:
        """What is not the same in two states."""
        for each in self._pages(f"trees/{start}/diff/{end}", "diffs"):
            yield tuple(each["key"]["elements"]), each.get("from"), each.get("to")

    def history(self, at: str, only: str = "") -> Iterator[Mapping[str, Any]]:
        """The commits that led there with what each did, the newest first; `only` is a condition in CEL."""
        yield from self._pages(
            f"trees/{at}/history", "logEntries", {"fetch": "ALL", **({"filter": only} if only else {})}, page=100
        )

    # ---- changes ------------------------------------------------------------------------------------------------

    def commit(self, at: Reference, meta: Mapping[str, Any], operations: Sequence[Mapping[str, Any]]) -> str:
        """One commit; a Conflict, and nothing done, if any of its keys changed since `at`. Says the new hash."""
        told = self._call("POST", f"trees/{at.at}/history/commit", {}, {"commitMeta": meta, "operations": operations})
        return str(told["targetBranch"]["hash"])

    def merge(
        self, into: Reference, source: Reference, meta: Mapping[str, Any] | None, *, dry_run: bool = False
    ) -> str:
        """All changes of a branch as one commit on another; a Conflict, and nothing done, if both changed a key."""
        body: dict[str, Any] = {"fromRefName": source.name, "fromHash": source.hash, "isReturnConflictAsResult": True}
        if meta:
            body["commitMeta"] = meta
        if dry_run:
            body["isDryRun"] = True  # `dryRun` would be ignored, and the merge done
        told = self._call("POST", f"trees/{into.at}/history/merge", {}, body)
        if not told["wasSuccessful"]:
            keys = [tuple(each["key"]["elements"]) for each in told["details"] if each.get("conflict")]
            raise Conflict("the merge has conflicts", keys)
        return str(told.get("resultantTargetHash") or "")

    # ---- HTTP ---------------------------------------------------------------------------------------------------

    def _pages(
        self, path: str, list_of: str, query: Mapping[str, str] | None = None, page: int = _PAGE
    ) -> Iterator[Mapping[str, Any]]:
        asked = {**(query or {}), "max-records": str(page)}
        while True:
            told = self._call("GET", path, asked)
            yield from told[list_of]
            if not told.get("hasMore"):
                return
            asked["page-token"] = told["token"]

    def _call(
        self, method: str, path: str, query: Mapping[str, str] | None = None, body: object = None
    ) -> dict[str, Any]:
        status, text = self._send(method, path + (f"?{urlencode(query)}" if query else ""), body)
        try:
            told = json.loads(text or b"{}")
        except ValueError:
            told = None
        if not isinstance(told, dict):
            raise CatalogError(
                f"What answers at {self.uri} is not Nessie (status {status}).", "Check catalog.uri: lake config show"
            )
        if status < 300:
            return told
        raise self._problem(status, str(told.get("errorCode", "")), str(told.get("message", "")))

    def _send(self, method: str, path: str, body: object) -> tuple[int, bytes]:
        # Not urllib's opener: it would ask a proxy for a server on this machine.
        from http.client import HTTPConnection, HTTPException, HTTPSConnection

        place = urlsplit(self.uri)
        kind = HTTPSConnection if place.scheme == "https" else HTTPConnection
        headers = {"Accept": "application/json", "Content-Type": "application/json"}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        connection = kind(str(place.hostname), place.port, timeout=_TIMEOUT_S)
        try:
            content = None if body is None else json.dumps(body).encode()
            connection.request(method, f"{place.path}/{path}", content, headers)
            answer = connection.getresponse()
            return answer.status, answer.read()
        except (OSError, HTTPException) as exc:
            why = getattr(exc, "strerror", None) or exc
            raise CatalogUnreachableError(
                f"Nessie does not answer at {self.uri}: {why}.",
                "Start it: lake up nessie (lake status shows what runs). Another address: catalog.uri.",
            ) from exc
        finally:
            connection.close()

    def _problem(self, status: int, code: str, message: str) -> Exception:
        if status in _DENIED:
            return CatalogAccessError(
                f"Nessie at {self.uri} does not let us in (status {status}).",
                "Set catalog.token (LAKE_CATALOG__TOKEN) to one that it takes.",
            )
        # A key that others made or removed in the same moment is told of as a wrong content ID.
        if status == 409 or (code == "BAD_REQUEST" and "content ID" in message):
            return Conflict(message)
        if code == "REFERENCE_NOT_FOUND":
            return NoSuchBranchError(f"{message.rstrip('.')}.", "All of them: lake branch list, lake tag list")
        return CatalogError(f"Nessie at {self.uri} refused (status {status}): {message[:500]}", "lake logs nessie")


def _key(key: Key) -> dict[str, list[str]]:
    return {"elements": list(key)}


def put(key: Key, content: Content) -> dict[str, Any]:
    """The operation that puts content under a key. Content that is new there has no id; content that is exchanged keeps it."""
    return {"type": "PUT", "key": _key(key), "content": content}


def remove(key: Key) -> dict[str, Any]:
    """The operation that takes away what is under a key."""
    return {"type": "DELETE", "key": _key(key)}
