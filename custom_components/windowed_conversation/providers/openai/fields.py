"""Fields that both OpenAI formats have: tools, attachments, effort, prompt caching and usage."""

from base64 import b64encode
from collections.abc import Collection, Mapping
from functools import lru_cache
import json
from typing import Any

from ...window import Attachment
from ..encoder import mime_type_of
from ..events import Request, ToolSchema, Usage
from ..json_values import count_at, finite, member
from ..names import sent_name, shortened
from ..profile import Caching, ReasoningStyle, accepted_effort
from ..schemas import with_items, without_choice

CACHE_PARAMETERS = ("prompt_cache_key", "prompt_cache_retention", "prompt_cache_options")

_CACHE_KEY_LENGTH = 64

# https://platform.openai.com/docs/guides/prompt-caching: models before 5.6 keep a prefix for a day where asked to,
# later ones write a prefix by themselves (mode implicit) and keep it for half an hour at least.
_CACHING: Mapping[Caching, Mapping[str, Any]] = {
    Caching.KEY: {},
    Caching.RETENTION: {"prompt_cache_retention": "24h"},
    Caching.OPTIONS: {"prompt_cache_options": {"mode": "implicit", "ttl": "30m"}},
}


def is_image(attachment: Attachment) -> bool:
    """Return whether an attachment is sent as an image, not as a file."""
    return attachment.mime_type.startswith("image/")


def data_url(attachment: Attachment) -> str:
    """Return an attachment as a `data:` URL."""
    return f"data:{mime_type_of(attachment)};base64,{b64encode(attachment.data).decode()}"


def file_name(attachment: Attachment) -> str:
    """Return the name of a file, which both formats require."""
    return attachment.name or f"attachment.{attachment.mime_type.rpartition('/')[2]}"


def reasoning_effort(request: Request) -> str | None:
    """Return the accepted effort that is nearest to the requested one, or None if the model accepts none."""
    taken = accepted_effort(request.profile, request.settings.effort)
    return taken.value if taken and request.profile.reasoning is ReasoningStyle.EFFORT else None


def sampling_parameters(request: Request) -> dict[str, float | None]:
    """Return the sampling parameters, empty if the model accepts none."""
    settings = request.settings
    return {"temperature": settings.temperature, "top_p": settings.top_p} if request.profile.sampling else {}


def caching_parameters(request: Request, known: Collection[str]) -> dict[str, Any]:
    """Return the prompt cache parameters of the request that the server knows."""
    asked = _CACHING.get(request.profile.caching)
    if asked is None:
        return {}
    key = {"prompt_cache_key": shortened(_CACHE_KEY_LENGTH, request.cache_key)} if request.cache_key else {}
    return {name: value for name, value in {**key, **asked}.items() if name in known}


# Requests of one agent offer the same tools again and again.
@lru_cache(maxsize=256)
def sent_parameters(tool: ToolSchema) -> dict[str, Any]:
    """Return the schema of a tool's parameters without the keywords that the formats refuse."""
    schema: dict[str, Any] = with_items(without_choice(tool.parameters))
    return schema


def encoded_tool(tool: ToolSchema) -> dict[str, Any]:
    """Return a tool as both formats describe a function."""
    return {"name": sent_name(tool.name), "description": tool.description, "parameters": sent_parameters(tool)}


def tool_choice(request: Request) -> dict[str, Any]:
    """Return the parameter that forbids calling the tools that are sent; empty if they may be called."""
    return {} if request.may_call or not request.tools else {"tool_choice": "none"}


def encode_arguments(arguments: Mapping[str, Any]) -> str:
    """Return a call's arguments as both formats write them: JSON as text, without numbers that JSON cannot express."""
    return json.dumps(finite(dict(arguments)), ensure_ascii=False)


def usage_of(usage: object, read: str, written: str) -> Usage:
    """Return a usage. The formats have other words for the tokens that were read and written."""
    of_read, of_written = member(usage, f"{read}_tokens_details"), member(usage, f"{written}_tokens_details")
    return Usage(
        input=count_at(usage, f"{read}_tokens"),
        cached=count_at(of_read, "cached_tokens"),
        output=count_at(usage, f"{written}_tokens"),
        cache_written=count_at(of_read, "cache_write_tokens"),
        reasoning=count_at(of_written, "reasoning_tokens"),
    )
