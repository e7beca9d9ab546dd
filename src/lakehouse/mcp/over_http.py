"""MCP over HTTP, as a part of the service: each call is made with the caller's key, as a client of the same service."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping
from functools import cached_property, partial
from typing import Any

import anyio
import anyio.from_thread
import anyio.to_thread
import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.exceptions import MCPError
from starlette.types import Receive, Scope, Send

from lakehouse.client import RemoteLake
from lakehouse.client.transport import Transport
from lakehouse.core.cancel import CancelScope
from lakehouse.mcp.server import ABOUT, NAME, VERSION, Caller, McpServer, ProtocolError

_PROGRESS_S = 1.0
#: The SDK's types of what comes and goes: it adds what each version of the protocol needs.
_TYPES: Mapping[str, tuple[type[types.RequestParams], type[types.Result]]] = {
    "tools/list": (types.PaginatedRequestParams, types.ListToolsResult),
    "tools/call": (types.CallToolRequestParams, types.CallToolResult),
    "resources/list": (types.PaginatedRequestParams, types.ListResourcesResult),
    "resources/templates/list": (types.PaginatedRequestParams, types.ListResourceTemplatesResult),
    "resources/read": (types.ReadResourceRequestParams, types.ReadResourceResult),
    "prompts/list": (types.PaginatedRequestParams, types.ListPromptsResult),
    "prompts/get": (types.GetPromptRequestParams, types.GetPromptResult),
}


class McpEndpoint:
    """The endpoint of a service."""

    def __init__(self, certificate: str = "") -> None:
        """
        Args:
            certificate: the file of the service's own TLS certificate, which its address on loopback does not match.
        """
        self._url, self._certificate = "", certificate
        self._methods = McpServer(writes=True)
        self._server: Server[Any] = Server(NAME, version=VERSION, instructions=ABOUT)
        for method, (params, _) in _TYPES.items():
            self._server.add_request_handler(method, params, partial(self._requested, method))
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

    async def _requested(self, method: str, context: ServerRequestContext[Any, Any], params: Any) -> types.Result:
        """Answer on a thread, where blocking is no harm; a client that cancels or leaves stops the statement."""
        scope, progress = CancelScope(), _Progress(context)
        given = params.model_dump(mode="json", by_alias=True, exclude_none=True)
        caller = Caller(partial(self._lake, context), progress.say)

        def work() -> dict[str, Any]:
            with scope.active():
                return self._methods.answer(method, given, caller)

        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(progress.report_time)
                result = await anyio.to_thread.run_sync(work, abandon_on_cancel=True)
                tasks.cancel_scope.cancel()
        except anyio.get_cancelled_exc_class():
            scope.cancel()
            raise
        except BaseExceptionGroup as group:
            error = group.exceptions[0]
            raise (MCPError(error.code, error.message) if isinstance(error, ProtocolError) else error) from group
        return _TYPES[method][1].model_validate(result)

    def _lake(self, context: ServerRequestContext[Any, Any]) -> RemoteLake:
        headers = context.request.headers if context.request is not None else {}
        _, _, key = headers.get("authorization", "").partition(" ")
        return RemoteLake(Transport(self._url, key, tls=self._tls))

    @cached_property
    def _tls(self) -> ssl.SSLContext | None:
        if not self._certificate:
            return None
        tls = ssl.create_default_context(cafile=self._certificate)
        tls.check_hostname = False  # the certificate is for the name by which others know the service
        tls.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        return tls


class _Progress:
    """Sends to the client what a call reports, and each second that it goes on."""

    def __init__(self, context: ServerRequestContext[Any, Any]) -> None:
        self._context, self._steps = context, 0

    def say(self, text: str) -> None:
        """Called on the thread that works."""
        anyio.from_thread.run(self._send, text)

    async def report_time(self) -> None:
        while True:
            await anyio.sleep(_PROGRESS_S)
            await self._send("running")

    async def _send(self, text: str) -> None:
        self._steps += 1
        await self._context.session.report_progress(self._steps, None, text)
