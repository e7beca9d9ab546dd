"""Services for the tests of the routes."""

from tests.support.servers.service import admin, pipelined, served, start

__all__ = ["admin", "pipelined", "served", "start"]
