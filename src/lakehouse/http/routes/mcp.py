"""The Model Context Protocol: the lake as tools of AI agents, with the rights of the key that a request has."""

from __future__ import annotations

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from lakehouse.http.registry import Routes
from lakehouse.http.service import CallContext, Service

routes = Routes("mcp")


@routes.operation(include_in_schema=False)
def mcp(call: CallContext) -> Response:
    """Answer a message of the protocol, which describes its own tools."""
    return _Forwarded(call.service)


class _Forwarded(Response):
    """An answer that the MCP server gives. It is loaded for the first one: most services have no agents."""

    def __init__(self, service: Service) -> None:
        super().__init__()
        self._service = service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._service.mcp.answer(scope, receive, send)
