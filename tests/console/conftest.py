"""The service of the tests of routes, for pages in a browser."""

from tests.support.servers.service import pipelined, served

__all__ = ["pipelined", "served"]
