"""Why a question is not answered."""

from __future__ import annotations

from collections.abc import Sequence


class Refusal(Exception):  # noqa: N818 - not an error: a refusal is one of the two results of a question
    """A question that is not understood, or understood in several ways. It ends as an `Answer` that is not answered."""

    def __init__(self, reason: str, choices: Sequence[str] = (), unknown: Sequence[str] = ()) -> None:
        super().__init__(reason)
        self.reason, self.choices, self.unknown = reason, tuple(choices), tuple(unknown)


class ModelFailure(Exception):  # noqa: N818 - it ends as a sentence of the answer, like a refusal
    """A model gave nothing that can be used. The reason is a sentence about the model, without its name."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
