"""Tests for Chat Completions in the variants that different servers send, produced by the scripted model server."""

import pytest

from custom_components.windowed_conversation.providers.events import FinishReason, Usage
from demo.model_server import SHAPES, ModelServer

from ..conftest import Ask
from ..heard import Heard

READABLE_SHAPES = sorted(SHAPES.keys() - {"broken_arguments"})
TEXT_SHAPES = ("azure", "no_usage", "openai", "tiny_chunks", "usage_at_finish")

STORY = "Once upon a time there was the sea, and nobody in the village could explain it."
TWO_CALLS = [
    ("intent__HassTurnOn", {"name": "kitchen light"}),
    ("intent__HassTurnOn", {"name": "bedroom light"}),
]


@pytest.mark.parametrize("shape", TEXT_SHAPES)
async def test_text_is_whole_in_every_shape(shape: str, ask_model: Ask) -> None:
    heard = await Heard().read(ask_model("tell me a story about the sea in 16 words", f"scripted+{shape}"))

    assert heard.text == STORY
    assert heard.calls == []


@pytest.mark.parametrize("model", ["scripted", "scripted+reasoning_key", "scripted+reasoning_key+tiny_chunks"])
async def test_reasoning_is_kept_apart_from_the_text(model: str, ask_model: Ask) -> None:
    heard = await Heard().read(ask_model("think about the weather", model))

    assert heard.text == "I have thought about the weather, and there is much to like."
    assert heard.reasoning.startswith("The user wants me to think about the weather.")
    assert heard.reasoning.endswith("A short answer will do.")


@pytest.mark.parametrize("shape", READABLE_SHAPES)
async def test_parallel_calls_are_whole_in_every_shape(shape: str, ask_model: Ask) -> None:
    heard = await Heard().read(ask_model("switch on the kitchen light and the bedroom light", f"scripted+{shape}"))

    assert heard.called == TWO_CALLS
    assert len(set(filter(None, heard.ids))) == 2
    assert heard.done_events[0].reason is FinishReason.TOOL_CALLS


@pytest.mark.parametrize("shape", ["openai", "usage_at_finish", "azure"])
async def test_usage_is_what_the_server_counted(shape: str, ask_model: Ask, model_server: ModelServer) -> None:
    heard = await Heard().read(ask_model("hello", f"scripted+{shape}"))

    counted = model_server.requests[-1].usage
    assert heard.usages == [Usage(input=counted["prompt"], output=counted["completion"])]
    assert counted["prompt"] > 0
