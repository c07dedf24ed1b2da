"""A server that drops the oldest messages of a request that is longer than its context, without saying so.

As Ollama does: https://github.com/ollama/ollama/blob/main/server/prompt.go keeps the system messages and the last one,
at any size. In a tool loop the last one is a result, so that the question may be dropped.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from .usage import prompt_bytes, tokens


@dataclass(frozen=True, slots=True)
class Dropping:
    """The size, in tokens. `is_ollama`: whether answers have its fingerprint, and `/api/ps` tells the size."""

    reads: int
    is_ollama: bool = False

    def read(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return the part of a request for Chat Completions that is read."""
        messages, tools = body["messages"], body.get("tools") or ()
        kept = list(messages)
        for message in messages[:-1]:
            if tokens(prompt_bytes(tools, kept)) <= self.reads:
                break
            if message.get("role") != "system":
                kept.remove(message)
        return {**body, "messages": kept}

    def running(self, models: Iterable[str]) -> dict[str, Any] | None:
        """Return the body of `/api/ps`, which lists the loaded models, or None if there is no such path."""
        if not self.is_ollama:
            return None
        return {"models": [{"name": model, "model": model, "context_length": self.reads} for model in models]}
