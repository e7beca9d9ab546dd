"""A REST catalog for every test of the protocol."""

from tests.support.servers.rest_catalog import serve, served, table

__all__ = ["serve", "served", "table"]
