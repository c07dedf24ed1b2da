"""Clients of the OpenAI SDK: which server is asked, and with which key. What is said to it is the format's business."""

from typing import Any

from openai import AsyncOpenAI

from .openai_chat import ChatCompletions

# The SDK refuses an empty key; servers at home ask for none.
_NO_KEY = "none"


def chat_completions(url: str, api_key: str | None, http_client: Any) -> ChatCompletions:
    """Return a provider for any server that speaks Chat Completions; opens no connection.

    `http_client` is an httpx2 or, at run time only, an httpx client, and stays its owner's. There is one attempt for
    each request: a retry of the SDK's would be heard as silence.
    """
    return ChatCompletions(
        AsyncOpenAI(api_key=api_key or _NO_KEY, base_url=url, http_client=http_client, max_retries=0)
    )
