"""Tests with random conversations that contain residue of several providers: no request breaks a rule of the API."""

from random import Random
from typing import Any

import pytest

from custom_components.windowed_conversation.providers.anthropic.encoding import encode_request
from custom_components.windowed_conversation.providers.events import ModelSettings, Request, ToolSchema
from custom_components.windowed_conversation.providers.models import Caching, Effort, ModelProfile, ReasoningStyle
from custom_components.windowed_conversation.window import Attachment, Message, NativeData, ToolCall

from .conftest import LIGHT, MODEL
from .rules import broken_rules
from .sdk_types import parse_with_sdk_types

TEXTS = ["", " ", "words", "Grüße\n"]
IDS = ["toolu_1", "call_2", "functions.a:0", "", "an id"]
PLACES = [
    {"type": "text"},
    {"type": "tool_use"},
    {"type": "thinking", "thinking": "hm", "signature": "EqQB"},
    {"type": "redacted_thinking", "data": "EmwK"},
]
NATIVES = [("anthropic", MODEL), ("anthropic", "claude-opus-5"), ("gemini", MODEL)]
TOOLS: list[tuple[ToolSchema, ...]] = [(), (LIGHT,)]


def answer(random: Random, **fields: Any) -> Message:
    residue = random.choices(PLACES, k=random.randrange(5))
    native = random.choice([None, NativeData(*random.choice(NATIVES), residue)])
    return Message.assistant(random.choice(TEXTS), native=native, **fields)


def exchange(random: Random, *, closed: bool) -> list[Message]:
    """Return a question and rounds of calls with shuffled results; a `closed` exchange may also have an answer."""
    attachments = tuple(
        random.choices([Attachment("image/png", b"1"), Attachment("audio/wav", b"2")], k=random.randrange(2))
    )
    messages = [Message.user(random.choice(TEXTS), attachments=attachments)]
    for _ in range(random.randrange(3)):
        calls = tuple(ToolCall(call_id, "a", {"x": 1}) for call_id in random.sample(IDS, random.randrange(1, 4)))
        results = [Message.tool(call.id, "a", random.choice([*TEXTS, '{"error": 1}'])) for call in calls]
        messages += [answer(random, tool_calls=calls), *random.sample(results, len(results))]
    return messages + [answer(random)] * (closed and random.randrange(2))


def test_no_rule_is_broken(subtests: pytest.Subtests) -> None:
    for seed in range(40):
        with subtests.test(seed=seed):
            random = Random(seed)
            history = [message for _ in range(random.randrange(12)) for message in exchange(random, closed=True)]
            profile = ModelProfile(
                reasoning=random.choice(list(ReasoningStyle)),
                # These are the efforts of all of Anthropic's models.
                efforts=(Effort.NONE, Effort.LOW, Effort.MEDIUM, Effort.HIGH),
                caching=random.choice(list(Caching)),
                images=seed % 2 == 0,
            )
            request = Request(
                MODEL,
                (Message.system(random.choice(TEXTS)), *history, *exchange(random, closed=False)),
                random.choice(TOOLS),
                profile=profile,
                settings=ModelSettings(effort=random.choice(list(Effort))),
            )

            body = encode_request(request)

            assert broken_rules(body) == set()
            assert parse_with_sdk_types(body) == body
