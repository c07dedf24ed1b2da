"""The original responses of eleven servers to a request that exceeds the model's context."""

import json
from typing import Any, NamedTuple

_TEXT = "This model's maximum context length is 4096 tokens. However, you requested 5120 tokens."


class Body(NamedTuple):
    """A response: its status, its body, and whether its type, status or code identify the request as too long."""

    status: int
    value: Any
    is_known: bool = False

    @property
    def is_stream(self) -> bool:
        """Return whether the error arrives as an event of a stream."""
        return self.status == 200

    @property
    def content(self) -> bytes:
        """Return the bytes of the response body."""
        written = json.dumps(self.value).encode()
        return b"data: " + written + b"\n\n" if self.is_stream else written

    @property
    def headers(self) -> dict[str, str]:
        """Return the headers of the response."""
        return {"Content-Type": "text/event-stream" if self.is_stream else "application/json"}


def _openai(code: Any, kind: Any = "invalid_request_error", param: Any = None) -> dict[str, Any]:
    return {"error": {"message": _TEXT, "type": kind, "param": param, "code": code}}


BODIES = {
    "openai": Body(400, _openai("context_length_exceeded", param="messages"), is_known=True),
    "llama_cpp": Body(
        400,
        {
            "error": {
                "code": 400,
                "message": _TEXT,
                "type": "exceed_context_size_error",
                "n_prompt_tokens": 5120,
                "n_ctx": 4096,
            }
        },
        is_known=True,
    ),
    "vllm_flat": Body(
        400, {"object": "error", "message": _TEXT, "type": "BadRequestError", "param": None, "code": 400}
    ),
    "vllm": Body(400, _openai(400, "BadRequestError", "input_tokens"), is_known=True),
    "vllm_both": Body(400, _openai(400, "BadRequestError", "input_tokens, max_tokens"), is_known=True),
    "litellm": Body(400, _openai("400", None)),
    "openrouter": Body(400, {"error": {"message": _TEXT, "code": 400, "metadata": {"provider_name": "Made up"}}}),
    "lm_studio": Body(400, {"error": _TEXT}),
    "lm_studio_stream": Body(200, {"error": _TEXT}),
    "mistral": Body(
        400, {"object": "error", "message": _TEXT, "type": "invalid_request_prompt", "param": None, "code": "3051"}
    ),
    "deepseek": Body(400, _openai("invalid_request_error")),
    "groq": Body(413, _openai("rate_limit_exceeded", "tokens"), is_known=True),
}
