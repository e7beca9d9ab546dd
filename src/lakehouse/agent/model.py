"""Talks to a model over the protocol of OpenAI, Anthropic or Ollama. Only imported where a model is set."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable
from typing import Any, Protocol
from urllib.parse import urlsplit

from lakehouse.agent import AgentSettings
from lakehouse.agent.advice import CheckedProposal
from lakehouse.agent.plan import Proposal
from lakehouse.agent.prompt import CHANGE_INSTRUCTIONS, INSTRUCTIONS
from lakehouse.agent.refusal import ModelFailure, Refusal
from lakehouse.core.errors import BadSettingError, LakeError, NotInstalledError

_LOG = logging.getLogger(__name__)
_REPAIRS = 2
#: Answers have a few hundred tokens; the limits are far above and stop one that never ends.
_MOST_OUTPUT_TOKENS, _MOST_BYTES = 4_000, 2_000_000
_NOT_PROTOCOL = "sent an answer that is not of its protocol."
_TOO_LONG = "The answer is too long."
_OLLAMA = "http://127.0.0.1:11434/v1"
_PROVIDERS = ("openai", "anthropic", "ollama")


class UsageLog(Protocol):
    """Where the use of a model is logged."""

    def __call__(self, model: str, outcome: str, **facts: Any) -> None: ...


class RemoteModel:
    """A model behind a server."""

    def __init__(self, settings: AgentSettings, log: UsageLog) -> None:
        """Raises BadSettingError for a model that cannot be used, before anything is sent."""
        self._settings, self._log = settings, log
        self._provider, _, self._id = settings.model.partition(":")
        if self._provider not in _PROVIDERS or not self._id:
            raise BadSettingError(
                f"agent.model = {settings.model!r} is not a model.",
                "Write it as openai:NAME, anthropic:NAME or ollama:NAME.",
            )
        if settings.url and settings.key:
            _check_may_carry_key(settings.url)
        if not settings.key and not settings.url and self._provider != "ollama":
            raise BadSettingError(
                f"The model {settings.model} needs a key.",
                "Set LAKE_AGENT__KEY, or name a file that holds it (docs/ask.md).",
            )

    @property
    def name(self) -> str:
        return self._settings.model

    def propose(
        self, prompt: str, check: Callable[[Proposal], CheckedProposal], writes: bool = False
    ) -> CheckedProposal:
        """Ask for a proposal until one passes the check, with up to two repairs; raises ModelFailure."""
        try:
            from pydantic_ai.usage import RunUsage
        except ImportError as exc:
            raise NotInstalledError("pydantic-ai", "agent") from exc

        usage, started = RunUsage(), time.monotonic()
        outcome = "failed"
        try:
            checked = asyncio.run(self._run(prompt, check, usage, CHANGE_INSTRUCTIONS if writes else INSTRUCTIONS))
            outcome = "proposed" if checked.answer.answered else "refused"
            return checked
        except ModelFailure as failure:
            outcome = failure.reason
            raise
        finally:
            facts = {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens}
            self._log(
                self.name, outcome, requests=usage.requests, **facts, seconds=round(time.monotonic() - started, 3)
            )

    async def _run(
        self, prompt: str, check: Callable[[Proposal], CheckedProposal], usage: Any, instructions: str
    ) -> CheckedProposal:
        from pydantic_ai import Agent, ModelRetry
        from pydantic_ai.exceptions import AgentRunError
        from pydantic_ai.usage import UsageLimits

        checked: list[CheckedProposal] = []
        complaints: list[str] = []

        def validate(proposal: Proposal) -> Proposal:
            try:
                checked.append(check(proposal))
            except (Refusal, LakeError) as exc:
                complaints.append(_complaint(exc))
                raise ModelRetry(complaints[-1]) from exc
            return proposal

        timeout = self._settings.timeout_s
        async with _http_client(timeout) as client:
            settings = {"max_tokens": _MOST_OUTPUT_TOKENS, "timeout": timeout, "max_retries": 1}
            agent = Agent(
                self._model(client),
                output_type=Proposal,
                instructions=instructions,
                retries=_REPAIRS,
                model_settings=settings,
            )
            agent.output_validator(validate)
            limits = UsageLimits(request_limit=1 + _REPAIRS, total_tokens_limit=self._settings.max_tokens)
            try:
                await agent.run(prompt, usage_limits=limits, usage=usage, timeout=timeout)
            except AgentRunError as exc:
                raise ModelFailure(self._reason(exc, complaints)) from exc
            except (AttributeError, LookupError, TypeError, ValueError) as exc:
                # The clients check little of an answer, and fail on one of another shape wherever they first need it.
                _LOG.debug("The answer of %s was not understood.", self.name, exc_info=True)
                raise ModelFailure(_NOT_PROTOCOL) from exc
        return checked[-1]

    def _model(self, client: Any) -> Any:
        """The client of the provider's protocol."""
        url, key = self._settings.url or None, self._settings.key or "none"
        if self._provider == "anthropic":
            from pydantic_ai.models.anthropic import AnthropicModel
            from pydantic_ai.providers.anthropic import AnthropicProvider

            return AnthropicModel(self._id, provider=AnthropicProvider(api_key=key, base_url=url, http_client=client))
        from pydantic_ai.models.openai import OpenAIChatModel

        if self._provider == "ollama":
            from pydantic_ai.providers.ollama import OllamaProvider

            local = OllamaProvider(base_url=url or _OLLAMA, api_key=key, http_client=client)
            return OpenAIChatModel(self._id, provider=local)
        from pydantic_ai.providers.openai import OpenAIProvider

        return OpenAIChatModel(self._id, provider=OpenAIProvider(base_url=url, api_key=key, http_client=client))

    def _reason(self, exc: Exception, complaints: list[str]) -> str:
        """What went wrong, in words of our own: an answer of a server may repeat the key or say anything."""
        from pydantic_ai import exceptions as errors

        if _is_too_long(exc):
            return "sent an answer that does not end."
        status = getattr(exc, "status_code", 0)
        reasons: tuple[tuple[type[Exception] | tuple[type[Exception], ...], str], ...] = (
            (errors.ModelAuthenticationError, f"rejected the key (status {status}): check LAKE_AGENT__KEY."),
            (errors.ModelRateLimitError, f"has too many requests at the moment (status {status}); try again later."),
            (errors.ModelQuotaExceededError, f"has no quota left (status {status})."),
            (errors.ModelNotFoundError, f"is not known to the server (status {status}): check agent.model."),
            (
                (errors.RunTimedOut, errors.ModelTimeoutError, errors.ModelRequestTimeout),
                f"did not answer within {self._settings.timeout_s:g} s (agent.timeout_s).",
            ),
            (
                errors.UsageLimitExceeded,
                f"needed more than the {self._settings.max_tokens} tokens of agent.max_tokens.",
            ),
            (errors.ModelConnectionError, "cannot be reached: check agent.url and that its server runs."),
            (errors.UnexpectedModelBehavior, "proposed nothing that can be used."),
        )
        reason = next((text for kind, text in reasons if isinstance(exc, kind)), "")
        if complaints and isinstance(exc, errors.UnexpectedModelBehavior | errors.UsageLimitExceeded):
            return f"proposed nothing that can be used: {complaints[-1]}"
        return reason or (f"failed with status {status}." if status else _NOT_PROTOCOL)


def _complaint(exc: Refusal | LakeError) -> str:
    """What is wrong with a proposal, for the model and for people."""
    if isinstance(exc, LakeError):
        return exc.message
    return f"{exc.reason} Choose from: {', '.join(exc.choices)}." if exc.choices else exc.reason


def _is_too_long(exc: BaseException | None) -> bool:
    while exc is not None and str(exc) != _TOO_LONG:
        exc = exc.__cause__ or exc.__context__
    return exc is not None


def _check_may_carry_key(url: str) -> None:
    parts = urlsplit(url)
    is_local = parts.hostname in ("localhost", "::1") or (parts.hostname or "").startswith("127.")
    if parts.scheme != "https" and not is_local:
        raise BadSettingError(
            f"The key of the model would cross the network to {parts.hostname} in clear text.", "Use https://."
        )


def _http_client(timeout_s: float) -> Any:
    """A client that follows no redirect, which could lead the key elsewhere, and reads no endless answer."""
    import httpx2

    class Limited(httpx2.AsyncByteStream):  # type: ignore[misc]
        def __init__(self, stream: Any) -> None:
            self._stream = stream

        async def __aiter__(self) -> AsyncIterator[bytes]:
            size = 0
            async for part in self._stream:
                size += len(part)
                if size > _MOST_BYTES:
                    raise httpx2.ReadError(_TOO_LONG)
                yield part

        async def aclose(self) -> None:
            await self._stream.aclose()

    async def limit(response: Any) -> None:
        if response.headers.get("content-encoding", "identity") != "identity":
            raise httpx2.DecodingError("The answer is compressed.", request=response.request)
        response.stream = Limited(response.stream)

    return httpx2.AsyncClient(
        timeout=timeout_s, event_hooks={"response": [limit]}, headers={"Accept-Encoding": "identity"}
    )
