"""A server that silently drops the oldest messages of a request that exceeds its context size.

Ollama does this: https://github.com/ollama/ollama/blob/main/server/prompt.go keeps the system messages and the last
message, whatever their size. In a tool loop the last message is a tool result, so the user's question may be dropped.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from .usage import encode_prompt, estimate_tokens


@dataclass(frozen=True, slots=True)
class ContextTruncation:
    """The context size in tokens. `is_ollama`: whether answers have Ollama's fingerprint and `/api/ps` has the size."""

    context_tokens: int
    is_ollama: bool = False

    def truncate(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return the part of a Chat Completions request that the server reads."""
        messages, tools = body["messages"], body.get("tools") or ()
        kept = list(messages)
        for message in messages[:-1]:
            if estimate_tokens(encode_prompt(tools, kept)) <= self.context_tokens:
                break
            if message.get("role") != "system":
                kept.remove(message)
        return {**body, "messages": kept}

    def build_loaded_models(self, models: Iterable[str]) -> dict[str, Any] | None:
        """Return the body of `/api/ps`, which lists the loaded models, or None if the server has no such path."""
        if not self.is_ollama:
            return None
        return {"models": [{"name": model, "model": model, "context_length": self.context_tokens} for model in models]}
