"""The rules for requests in the API's documentation, implemented independently of the encoder."""

from collections import Counter
from collections.abc import Iterator
from itertools import chain, pairwise
import re
from typing import Any

_ID = re.compile(r"[a-zA-Z0-9_-]+")


def broken_rules(body: dict[str, Any]) -> set[str]:
    """Return the names of the rules that a request breaks."""
    messages = body["messages"]
    blocks = [block for message in messages for block in message["content"]]
    every = [*body.get("tools", ()), *body.get("system", ()), *blocks]
    used = [block["id"] for block in blocks if block["type"] == "tool_use"]
    rules = {
        "first a user's": messages[0]["role"] == "user",
        "by turns": all(one["role"] != other["role"] for one, other in pairwise(messages)),
        "no empty message": all(message["content"] for message in messages),
        "no blank text": all(block["text"].strip() for block in every if block.get("type") == "text"),
        "every id once": all(times == 1 for times in Counter(used).values()),
        "ids as allowed": all(_ID.fullmatch(each) for each in used),
        "tools with calls": not used or bool(body.get("tools")),
        "at most four marks": sum("cache_control" in block for block in every) <= 4,
        "no mark on thinking": all("cache_control" not in b for b in blocks if "thinking" in b["type"]),
        "no thinking at the end": all(
            "thinking" not in m["content"][-1]["type"] for m in messages if m["role"] == "assistant"
        ),
    }
    return {name for name, kept in rules.items() if not kept} | set(_broken_pairs(messages))


def _broken_pairs(messages: list[dict[str, Any]]) -> Iterator[str]:
    for message, following in pairwise([*messages, {"role": "user", "content": []}]):
        calls = [block["id"] for block in message["content"] if block["type"] == "tool_use"]
        kinds = [block["type"] == "tool_result" for block in following["content"]]
        results = [block["tool_use_id"] for block in following["content"] if block["type"] == "tool_result"]
        if sorted(calls) != sorted(results):
            yield "a result for each call and a call for each result"
        if kinds != sorted(kinds, reverse=True):
            yield "results first"
    if any(block["type"] == "tool_result" for block in chain(messages[0]["content"])):
        yield "a result for each call and a call for each result"
