"""What every wire format owes the turn, against a scripted model behind a real HTTP server."""

import pytest

from custom_components.windowed_conversation.providers.errors import BadStream
from custom_components.windowed_conversation.providers.events import Finished, FinishReason, Usage
from demo.model_server import SHAPES, ModelServer

from ..conftest import Ask, over_either_client
from ..heard import Heard

READABLE_SHAPES = sorted(SHAPES.keys() - {"broken_arguments"})
TEXT_SHAPES = ("azure", "no_usage", "openai", "tiny_chunks", "usage_at_finish")

STORY = "Once upon a time there was the sea, and nobody in the village"
TWO_CALLS = [
    ("intent__HassTurnOn", {"name": "kitchen light"}),
    ("intent__HassTurnOn", {"name": "bedroom light"}),
]


@pytest.mark.parametrize("shape", TEXT_SHAPES)
async def test_text_is_whole_in_every_shape(shape: str, ask: Ask) -> None:
    heard = await Heard().listen(ask("tell me a story about the sea in 13 words", f"scripted+{shape}"))

    assert heard.text == STORY
    assert heard.calls == []


@over_either_client
async def test_text_comes_in_the_pieces_that_the_server_sends(ask: Ask) -> None:
    heard = await Heard().listen(ask("tell me a story about the sea in 13 words"))

    assert len(heard.texts) == 13


async def test_stream_ends_with_its_terminal_event(ask: Ask) -> None:
    heard = await Heard().listen(ask("hello"))

    assert heard.finished == [heard.events[-1]] == [Finished(FinishReason.STOP, "stop")]


@pytest.mark.parametrize("model", ["scripted", "scripted+reasoning_key", "scripted+reasoning_key+tiny_chunks"])
async def test_reasoning_is_kept_apart_from_the_text(model: str, ask: Ask) -> None:
    heard = await Heard().listen(ask("think about the weather", model))

    assert heard.text == "I have thought about the weather, and there is much to like."
    assert heard.reasoning.startswith("The user wants me to think about the weather.")
    assert heard.reasoning.endswith("A short answer will do.")


@pytest.mark.parametrize("shape", READABLE_SHAPES)
async def test_parallel_calls_are_whole_in_every_shape(shape: str, ask: Ask) -> None:
    heard = await Heard().listen(ask("switch on the kitchen light and the bedroom light", f"scripted+{shape}"))

    assert heard.called == TWO_CALLS
    assert len(set(filter(None, heard.ids))) == 2
    assert heard.finished[0].reason is FinishReason.TOOL_CALLS


@pytest.mark.parametrize("shape", ["openai", "tiny_chunks", "interleaved", "interleaved+tiny_chunks"])
async def test_fragments_of_arguments_are_put_together(shape: str, ask: Ask) -> None:
    heard = await Heard().listen(ask("switch on the café lamp and the 照明", f"scripted+{shape}"))

    assert sorted(arguments["name"] for _, arguments in heard.called) == ["café lamp", "照明"]


@pytest.mark.parametrize(
    "shape", ["openai", "empty_arguments", "no_index+empty_arguments", "no_id+empty_arguments", "dict_arguments"]
)
async def test_call_without_arguments_has_an_empty_object(shape: str, ask: Ask) -> None:
    heard = await Heard().listen(ask("which devices are on?", f"scripted+{shape}"))

    assert heard.called == [("homeassistant__GetLiveContext", {})]


async def test_text_may_come_before_a_call(ask: Ask) -> None:
    heard = await Heard().listen(ask("say one moment, then switch on the bedroom light"))

    assert heard.text.strip() == "One moment."
    assert heard.called == [("intent__HassTurnOn", {"name": "bedroom light"})]


@pytest.mark.parametrize("shape", ["broken_arguments", "one_chunk+broken_arguments"])
async def test_arguments_that_are_no_json_are_an_error(shape: str, ask: Ask) -> None:
    heard = Heard()
    with pytest.raises(BadStream):
        await heard.listen(ask("switch on the kitchen light", f"scripted+{shape}"))

    assert heard.calls == []


@pytest.mark.parametrize("shape", ["openai", "usage_at_finish", "azure"])
async def test_usage_is_what_the_server_counted(shape: str, ask: Ask, model_server: ModelServer) -> None:
    heard = await Heard().listen(ask("hello", f"scripted+{shape}"))

    counted = model_server.requests[-1].usage
    assert heard.usages == [Usage(input=counted["prompt"], output=counted["completion"])]
    assert counted["prompt"] > 0


async def test_cached_tokens_are_part_of_the_usage(ask: Ask, model_server: ModelServer) -> None:
    long_input = "word " * 2000
    await Heard().listen(ask(long_input))

    heard = await Heard().listen(ask(long_input))

    assert heard.usages[0].cached == model_server.requests[-1].usage["cached"] > 2000


async def test_answer_without_usage_is_whole(ask: Ask) -> None:
    heard = await Heard().listen(ask("hello", "scripted+no_usage"))

    assert heard.usages == []
    assert heard.finished == [Finished(FinishReason.STOP, "stop")]


async def test_call_that_is_finished_with_stop_is_a_call(ask: Ask) -> None:
    heard = await Heard().listen(ask("which devices are on?", "scripted+finish_stop"))

    assert heard.finished == [Finished(FinishReason.TOOL_CALLS, "stop")]


async def test_requests_are_valid(ask: Ask, model_server: ModelServer) -> None:
    await Heard().listen(ask("hello"))

    assert model_server.requests[-1].violations == []
