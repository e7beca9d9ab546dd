"""Questions in plain words: the semantic layer, the planner that needs no model, and the model that may help it."""

from __future__ import annotations

from lakehouse.core.dataclass import dataclass
from lakehouse.core.setting import setting


@dataclass(frozen=True)
class AgentSettings:
    """`[agent]` in lake.toml, `LAKE_AGENT__*` in the environment."""

    model: str = setting(
        "",
        "Model that helps with questions: openai:NAME, anthropic:NAME or ollama:NAME (default: none, no network is used).",
    )
    url: str = setting(
        "",
        "Address of the model's server, or of one that speaks its protocol, e.g. http://127.0.0.1:8000/v1"
        " (default: the provider's; of ollama, port 11434 of this machine).",
        hidden=True,
    )
    key: str = setting("", "API key of the model's server; never in lake.toml (default: none).", secret=True)
    timeout_s: float = setting(60.0, "Seconds that the model may take for a question, and a statement of it to run.")
    max_tokens: int = setting(30_000, "Tokens that a question may cost, in requests and answers together.")
    max_rows: int = setting(1_000, "Maximum number of rows of an answer by a statement of the model.")
