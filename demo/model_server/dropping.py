"""A server that silently drops the oldest messages of a request that exceeds its context size.

Ollama does this: https://github.com/ollama/ollama/blob/main/server/prompt.go keeps the system messages and the last
message, whatever their size. In a tool loop the last message is a tool result, so the user's question may be dropped.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from .usage import prompt_bytes, tokens


@dataclass(frozen=True, slots=True)
class Dropping:
    """The context size in tokens. `is_ollama`: whether answers have Ollama's fingerprint and `/api/ps` has the size."""

    reads: int
    is_ollama: bool = False

    def read(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return the part of a Chat Completions request that the server reads."""
        messages, tools = body["messages"], body.get("tools") or ()
        kept = list(messages)
        for message in messages[:-1]:
            if tokens(prompt_bytes(tools, kept)) <= self.reads:
                break
            if message.get("role") != "system":
                kept.remove(message)
        return {**body, "messages": kept}

    def running(self, models: Iterable[str]) -> dict[str, Any] | None:
        """Return the body of `/api/ps`, which lists the loaded models, or None if the server has no such path."""
        if not self.is_ollama:
            return None
        return {"models": [{"name": model, "model": model, "context_length": self.reads} for model in models]}
