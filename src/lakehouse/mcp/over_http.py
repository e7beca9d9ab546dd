"""MCP over HTTP, as a part of the service: each call is made with the caller's key, as a client of the same service."""

from __future__ import annotations

import asyncio
import ssl
from functools import cached_property
from typing import Any

from mcp.server.mcpserver import Context
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from starlette.types import Receive, Scope, Send

from lakehouse.client import RemoteLake
from lakehouse.client.transport import Transport
from lakehouse.mcp.server import build_server


class McpEndpoint:
    """The endpoint of a service."""

    def __init__(self, certificate: str = "") -> None:
        """
        Args:
            certificate: the file of the service's own TLS certificate, which its address on loopback does not match.
        """
        self._url, self._certificate = "", certificate
        self._server = build_server(self._lake, writes=True)
        # The gate in front checks the key of each request, so a page of another origin gets nowhere without one.
        self._server.streamable_http_app(
            stateless_http=True, transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False)
        )
        self._started: asyncio.Future[StreamableHTTPSessionManager] | None = None

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, whose key the gate has checked."""
        host, port = scope["server"]  # of the socket on which the request came
        self._url = f"{scope['scheme']}://{f'[{host}]' if ':' in host else host}:{port}"
        if self._started is None:
            self._started = asyncio.get_running_loop().create_future()
            self._task = asyncio.create_task(self._run(self._started))  # ends with the event loop
        sessions = await self._started
        await sessions.handle_request(scope, receive, send)

    async def _run(self, started: asyncio.Future[StreamableHTTPSessionManager]) -> None:
        sessions = self._server.session_manager
        async with sessions.run():
            started.set_result(sessions)
            await asyncio.Event().wait()

    def _lake(self, context: Context[Any, Any]) -> RemoteLake:
        _, _, key = (context.headers or {}).get("authorization", "").partition(" ")
        return RemoteLake(Transport(self._url, key, tls=self._tls))

    @cached_property
    def _tls(self) -> ssl.SSLContext | None:
        if not self._certificate:
            return None
        tls = ssl.create_default_context(cafile=self._certificate)
        tls.check_hostname = False  # the certificate is for the name by which others know the service
        tls.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        return tls
