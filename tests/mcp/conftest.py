"""A service for the tests of MCP over HTTP."""

from tests.support.servers.service import served

__all__ = ["served"]
