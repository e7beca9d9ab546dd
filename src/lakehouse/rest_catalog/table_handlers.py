"""Handlers of tables, except commits: list, create, load, register, rename, drop."""

from __future__ import annotations

import json
import uuid
from datetime import UTC, datetime

from lakehouse.catalogs.sql.rows import TABLE
from lakehouse.rest_catalog import names, table_policy
from lakehouse.rest_catalog.backend import CatalogBackend
from lakehouse.rest_catalog.commits import put_new
from lakehouse.rest_catalog.errors import CommitFailedError
from lakehouse.rest_catalog.locations import table_locations
from lakehouse.rest_catalog.messages import CatalogRequest, CatalogResponse
from lakehouse.rest_catalog.metadata_files import new_location
from lakehouse.rest_catalog.own_files import OwnFiles
from lakehouse.rest_catalog.pagination import list_page
from lakehouse.rest_catalog.pointers import Swap, missing
from lakehouse.rest_catalog.table_creation import first_metadata


class TableHandlers:
    """Handles the requests for tables."""

    def __init__(self, backend: CatalogBackend) -> None:
        self._backend = backend

    def list(self, request: CatalogRequest) -> CatalogResponse:
        """Return the tables of a namespace."""
        return list_page(self._backend, request, TABLE)

    def load(self, request: CatalogRequest) -> CatalogResponse:
        """Return the metadata of a table."""
        location = self._backend.pointers.get(request.branch, request.table)
        self._backend.files.check_exists(location)
        return CatalogResponse(metadata=location)

    def exists(self, request: CatalogRequest) -> CatalogResponse:
        """Check that there is such a table."""
        self._backend.pointers.get(request.branch, request.table)
        return CatalogResponse(204)

    def create(self, request: CatalogRequest) -> CatalogResponse:
        """Create a table or, where it is staged, return its future metadata."""
        name = names.table_name(request.namespace, request.text("name"))
        backend = self._backend
        backend.pointers.check_free(request.branch, name, TABLE)
        own = OwnFiles(backend, request, name)
        location = own.free_location(backend.default_location(request.branch, name), uuid.uuid4().hex[:8])
        metadata, content = first_metadata(name, request.body, location, backend.default_properties)
        table_policy.check_table(backend, own, metadata, None)
        if request.body.get("stage-create"):
            backend.files.create_folders(metadata.location)
            return CatalogResponse(body={"metadata": json.loads(content)}, staged=True)
        location = new_location(metadata.location, metadata.properties)
        response = CatalogResponse(metadata=location)
        put_new(backend, request, Swap(name, None, location), content, response)
        return response

    def register(self, request: CatalogRequest) -> CatalogResponse:
        """Set the pointer of a name to existing metadata; with `overwrite`, also of an existing table."""
        name = names.table_name(request.namespace, request.text("name"))
        location = request.text("metadata-location")
        self._backend.warehouse.check_metadata_file(location)
        OwnFiles(self._backend, request, name).check_registration(location)
        metadata = self._backend.files.table(location)
        for folder in table_locations(metadata.location, metadata.properties):
            self._backend.warehouse.check(folder)
        response = CatalogResponse(metadata=location)
        start = self._backend.pointers.find(request.branch, name) if request.body.get("overwrite") else None
        swap = Swap(name, start, location)
        if start != location and not self._backend.pointers.swap(request.branch, [swap], request.store(response)):
            raise CommitFailedError(f"Another client changed {names.format_name(name)} meanwhile.")
        return response

    def rename(self, request: CatalogRequest) -> CatalogResponse:
        """Rename a table."""
        start, end = (request.identifier(request.body.get(role)) for role in ("source", "destination"))
        response = CatalogResponse(204)
        self._backend.pointers.rename(request.branch, start, end, TABLE, request.store(response))
        return response

    def drop(self, request: CatalogRequest) -> CatalogResponse:
        """Drop a table so that it can be restored.

        Its files stay even where a purge is requested: another branch may share them. Maintenance, which reads every
        branch, removes unused files.
        """
        name = request.table
        if not self._backend.catalog.on(request.branch).drop(name, datetime.now(UTC).isoformat()):
            raise missing(name, TABLE)
        return CatalogResponse(204)

    def report_metrics(self, request: CatalogRequest) -> CatalogResponse:
        """Accept the metrics of a scan or commit, which nothing uses yet."""
        request.text("report-type")
        return CatalogResponse(204)
