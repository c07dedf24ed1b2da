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
    """The context size of a model in tokens, which `/api/ps` has. The answers have Ollama's fingerprint."""

    context_tokens: int

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

    def build_loaded_models(self, models: Iterable[str]) -> dict[str, Any]:
        """Return the body of `/api/ps`, which lists the loaded models."""
        return {"models": [{"name": model, "model": model, "context_length": self.context_tokens} for model in models]}
