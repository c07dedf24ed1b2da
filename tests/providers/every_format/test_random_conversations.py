"""Tests with random conversations that every provider answers in turn: no request breaks a rule of its format."""

from dataclasses import replace
from random import Random
from typing import Any

import pytest

from custom_components.windowed_conversation.providers.events import ModelSettings, Request, ToolSchema
from custom_components.windowed_conversation.providers.models import Caching, Effort, ModelProfile, ReasoningStyle
from custom_components.windowed_conversation.window import (
    Attachment,
    EstimatedCounter,
    Message,
    NativeData,
    Role,
    ToolCall,
    Window,
    WindowPolicy,
)
from demo.model_server import ModelServer
from tests.providers.heard import Heard
from tests.providers.snapshots.conversation import CLAUDE, GEMINI, GPT, LLAMA, MODELS, PIXEL_PNG, TOOLS, make_native
from tests.providers.wires.parts import Wire

MODEL_OF = {"anthropic": CLAUDE, "chat": LLAMA, "gemini": GEMINI, "responses": GPT}
STYLES_OF = {
    "anthropic": (ReasoningStyle.BUDGET, ReasoningStyle.ADAPTIVE),
    "chat": (ReasoningStyle.NONE,),
    "gemini": (ReasoningStyle.LEVEL,),
    "responses": (ReasoningStyle.EFFORT,),
}
SAID = ("words", "Grüße\n", "\N{GRINNING FACE}")
TEXTS = ("", " ", *SAID)
RESULTS = ("plain", '{"error": "no such light"}', "[1, 2]", "NaN", '{"a": NaN}', "null", '"x"', "7" * 500)
# Examples of unusual ids, because models and servers invent them freely.
IDS = ("toolu_1", "call_2", "functions.a:0", "an id", "x" * 80, "\N{SNOWMAN}", "a", "b")
NAMES = (*(tool.name for tool in TOOLS), "get weather", "1st", "a.b", "/", "x" * 200, "\N{SNOWMAN}")
ATTACHMENTS = (
    Attachment("image/png", PIXEL_PNG),
    Attachment("image/jpg", b"\xff\xd8\xff\xe0"),
    Attachment("application/pdf", b"%PDF"),
)
TOOL_LISTS = (TOOLS, (), (ToolSchema("a.b c", "", {"type": "object", "properties": {}}), *TOOLS))


def native(random: Random, text: str, calls: tuple[ToolCall, ...]) -> NativeData | None:
    """Return the residue of a random format's model on an answer, or None."""
    return make_native(random.choice([*MODEL_OF, "none"]), text, calls) if calls else None


def rounds(random: Random, ids: list[str]) -> list[Message]:
    """Return rounds of calls with their results in random order; the call ids are removed from `ids`."""
    messages = list[Message]()
    for _ in range(random.randrange(3)):
        calls = tuple(
            ToolCall(ids.pop(), random.choice(NAMES), random.choice([{}, {"x": [1, {"ü": None}]}]))
            for _ in range(random.randrange(1, 4))
        )
        text = random.choice(TEXTS)
        messages.append(Message.assistant(text, tool_calls=calls, native=native(random, text, calls)))
        results = [Message.tool(call.id, call.name, random.choice(RESULTS)) for call in calls]
        messages += random.sample(results, len(results))
    return messages


def conversation(random: Random) -> tuple[Message, ...]:
    """Return the messages of a window that several providers have answered, in the middle or at the start of a turn."""
    policy = WindowPolicy(random.choice([300, 8000]), tool_results=random.choice(["stub", "keep"]))
    window = Window("conversation", policy, EstimatedCounter(), clock=lambda: 1_795_420_800.0)
    ids = [f"{call_id}{number}" for number in range(9) for call_id in IDS]
    random.shuffle(ids)
    window.set_system_prompt("You are a voice assistant.")
    for _ in range(random.randrange(8)):
        attached = tuple(random.sample(ATTACHMENTS, random.randrange(2)))
        answers = [Message.assistant(random.choice(TEXTS)) for _ in range(random.randrange(3))]
        window.add_exchange((Message.user(random.choice(SAID), attachments=attached), *rounds(random, ids), *answers))
    window.open(random.choice(SAID))
    for message in rounds(random, ids):
        window.add(message)
    return window.messages()


def looking(random: Random, messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """Return the messages, with a picture or a document at about half of the tool results."""
    return tuple(
        [
            replace(each, attachments=(random.choice(ATTACHMENTS),))
            if each.role is Role.TOOL and random.random() < 0.5
            else each
            for each in messages
        ]
    )


@pytest.mark.parametrize("looks", [False, True])
@pytest.mark.parametrize("seed", range(40))
async def test_no_rule_is_broken(
    seed: int, looks: bool, wire: Wire, http_client: Any, model_server: ModelServer
) -> None:
    random = Random(seed)
    model_server.change(models=MODELS)
    messages = conversation(random)
    request = Request(
        MODEL_OF[wire.name],
        looking(Random(seed), messages) if looks else messages,
        random.choice(TOOL_LISTS),
        profile=ModelProfile(
            reasoning=random.choice(STYLES_OF[wire.name]),
            caching=Caching.BREAKPOINTS if wire.name == "anthropic" else Caching.AUTOMATIC,
            images=random.choice([True, False]),
        ),
        settings=ModelSettings(effort=random.choice([None, *Effort])),
    )

    await Heard().read(wire.connect(model_server.address, http_client).stream(request))

    assert model_server.requests[-1].violations == []
