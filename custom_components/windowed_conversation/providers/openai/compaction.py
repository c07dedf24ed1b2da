"""OpenAI's `/responses/compact`: the request, the answer, and the part of it that is sent back. Pure.

The answer holds everything that the user said and one item that only the same model can read. It is sent back
unchanged. https://platform.openai.com/docs/guides/compaction
"""

from collections.abc import Iterator, Mapping
from typing import Any

from ...window import Message
from ..encoder import residue_of
from ..errors import BadStream
from ..events import Compacted
from ..json_values import finite, member, objects, text_of
from .fields import usage_of

_COMPACTED = "compacted"


def encode_compaction(prompt: Mapping[str, Any], caching: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters; `prompt` is a request's. Tools are not offered: there is nothing to answer."""
    sent = {name: prompt[name] for name in ("model", "instructions", "input") if name in prompt}
    key = "prompt_cache_key"
    return sent | ({key: caching[key]} if key in caching else {})


def read_compaction(answer: Any) -> Compacted:
    """Return the result from an answer. Raises `BadStream` if nothing was compacted."""
    try:
        items = finite(answer["output"])
        compacted = [item for item in items if item["type"] == "compaction" and text_of(item["encrypted_content"])]
        texts = tuple(text for item in items for text in _item_texts(item))
    except (AttributeError, LookupError, TypeError, ValueError) as err:
        raise BadStream(f"the server does not compact ({type(err).__name__})") from err
    if not compacted:
        raise BadStream("the server does not compact")
    return Compacted({_COMPACTED: items}, texts, usage_of(member(answer, "usage"), "input", "output"))


def compacted_items(message: Message | None, provider: str, model: str) -> list[Any]:
    """Return the items that replace a message and its question if this model compacted them, else none."""
    return objects(member(residue_of(message, provider, model), _COMPACTED))


def _item_texts(item: Mapping[str, Any]) -> Iterator[str]:
    content = item.get("content") or ()
    yield from (text_of(part.get("text")) for part in content if isinstance(part, dict))
