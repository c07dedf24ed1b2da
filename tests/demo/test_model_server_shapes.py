"""Every shape that servers write answers in, as the real SDK receives it."""

import pytest

from demo.model_server import SHAPES

from .model_talk import TOOLS, user

BOTH = "switch on the lamp and the fan"
ON = "intent__HassTurnOn"


def tool_chunks(heard):
    return [
        [(call.index, call.id, call.function.name, call.function.arguments) for call in delta.tool_calls]
        for delta in heard.deltas
        if delta.tool_calls
    ]


def without_ids(chunks):
    return [[(index, name, arguments) for index, _, name, arguments in chunk] for chunk in chunks]


@pytest.mark.parametrize("model", ["scripted", "scripted+openai"])
async def test_openai_sends_index_id_and_name_first_then_fragments(ask, model):
    chunks = tool_chunks(await ask(BOTH, model=model))
    assert without_ids(chunks) == [
        [(0, ON, "")],
        [(0, None, '{"name":')],
        [(0, None, ' "lamp"}')],
        [(1, ON, "")],
        [(1, None, '{"name":')],
        [(1, None, ' "fan"}')],
    ]
    assert [bool(chunk[0][1]) for chunk in chunks] == [True, False, False, True, False, False]


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ("one_chunk", [[(0, ON, '{"name": "lamp"}'), (1, ON, '{"name": "fan"}')]]),
        ("ollama", [[(0, ON, '{"name": "lamp"}')], [(0, ON, '{"name": "fan"}')]]),
        ("no_index", [[(None, ON, '{"name": "lamp"}')], [(None, ON, '{"name": "fan"}')]]),
        ("dict_arguments", [[(0, ON, {"name": "lamp"})], [(1, ON, {"name": "fan"})]]),
        ("no_id", [[(0, ON, '{"name": "lamp"}')], [(1, ON, '{"name": "fan"}')]]),
        ("empty_id", [[(0, ON, '{"name": "lamp"}')], [(1, ON, '{"name": "fan"}')]]),
        ("ollama+dict_arguments", [[(0, ON, {"name": "lamp"})], [(0, ON, {"name": "fan"})]]),
        (
            "interleaved",
            [
                [(0, ON, "")],
                [(1, ON, "")],
                [(0, None, '{"name":')],
                [(1, None, '{"name":')],
                [(0, None, ' "lamp"}')],
                [(1, None, ' "fan"}')],
            ],
        ),
    ],
)
async def test_a_shape_cuts_the_calls_its_own_way(ask, shape, expected):
    heard = await ask(BOTH, model=f"scripted+{shape}")
    assert without_ids(tool_chunks(heard)) == expected
    assert heard.finish_reasons == ["tool_calls"]


@pytest.mark.parametrize("shape", ["openai", "one_chunk", "ollama", "no_index", "interleaved", "dict_arguments"])
async def test_every_call_has_an_id_of_its_own(ask, shape):
    ids = [call.id for call in (await ask(BOTH, model=f"scripted+{shape}")).calls if call.id]
    assert len(set(ids)) == 2


@pytest.mark.parametrize(("shape", "expected"), [("no_id", None), ("empty_id", "")])
async def test_an_id_may_be_missing_or_empty(ask, shape, expected):
    assert {call.id for call in (await ask(BOTH, model=f"scripted+{shape}")).calls} == {expected}


async def test_a_call_without_arguments_may_have_an_empty_string(ask):
    heard = await ask("look at the clock", model="scripted+empty_arguments")
    assert without_ids(tool_chunks(heard)) == [[(0, "llm__GetDateTime", "")]]


async def test_arguments_may_be_no_json(ask):
    heard = await ask("switch on the lamp", model="scripted+broken_arguments")
    assert "".join(call.function.arguments for call in heard.calls) == '{"name": "lamp"'


async def test_tiny_chunks_cut_everywhere(ask):
    heard = await ask("say one moment, then switch on the lamp", model="scripted+tiny_chunks")
    assert [delta.content for delta in heard.deltas if delta.content] == list("One moment. ")
    fragments = [call.function.arguments for call in heard.calls if call.function.arguments]
    assert fragments == list('{"name": "lamp"}')


async def test_the_finish_reason_may_be_stop_with_tool_calls(ask):
    assert (await ask(BOTH, model="scripted+finish_stop")).finish_reasons == ["stop"]


async def test_thinking_may_be_under_another_key(ask):
    heard = await ask("think about pizza", model="scripted+reasoning_key")
    assert heard.extra("reasoning").startswith("The user wants")
    assert heard.extra("reasoning_content") == ""


async def test_thinking_may_be_tagged_in_the_text(ask):
    heard = await ask("think about pizza", model="scripted+think_tags")
    assert heard.text.startswith("<think>The user wants")
    assert heard.extra("reasoning_content") == ""


async def test_azure_begins_with_no_choices(ask):
    assert (await ask("hello", model="scripted+azure")).chunks[0].choices == []


async def test_usage_comes_in_a_last_chunk_without_choices(ask):
    heard = await ask("hello")
    assert [bool(chunk.usage) for chunk in heard.chunks[-2:]] == [False, True]
    assert heard.chunks[-1].choices == []
    assert len(heard.usages) == 1


async def test_usage_may_come_with_the_finish_reason(ask):
    heard = await ask("hello", model="scripted+usage_at_finish")
    assert heard.chunks[-1].choices[0].finish_reason == "stop"
    assert len(heard.usages) == 1


async def test_usage_may_never_come(ask):
    assert (await ask("hello", model="scripted+no_usage")).usages == []


async def test_usage_is_only_sent_when_asked_for(client):
    stream = await client.chat.completions.create(model="scripted", messages=[user("hello")], stream=True)
    assert [chunk.usage async for chunk in stream if chunk.usage or not chunk.choices] == []


async def test_the_servers_shapes_hold_for_every_model(ask, server):
    server.change(shapes=("ollama",))
    assert [call.index for call in (await ask(BOTH)).calls] == [0, 0]


async def test_the_models_shape_goes_before_the_servers(ask, server):
    server.change(shapes=("ollama",))
    assert [call.index for call in (await ask(BOTH, model="scripted+one_chunk")).calls] == [0, 1]


async def test_the_models_are_listed_with_every_shape(client):
    listed = [model.id async for model in client.models.list()]
    assert listed == sorted(["scripted", *(f"scripted+{shape}" for shape in SHAPES)])


@pytest.mark.parametrize("shape", SHAPES)
async def test_every_shape_is_also_written_when_nothing_is_streamed(client, shape):
    answer = await client.chat.completions.create(model=f"scripted+{shape}", messages=[user(BOTH)], tools=TOOLS)
    assert [call.function.name for call in answer.choices[0].message.tool_calls] == [ON, ON]


async def test_the_model_may_think_before_every_answer(ask):
    heard = await ask("my name is Ada", model="scripted+reasoning")
    assert heard.extra("reasoning_content")
    assert heard.text == "Nice to meet you, Ada."
