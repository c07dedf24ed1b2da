"""Usage: an estimate from the request's bytes, and a prompt cache that serves identical beginnings."""

from itertools import takewhile

from hypothesis import given, strategies as st
import pytest

from demo.model_server.prompt_cache import common_prefix

from .model_talk import LONG, TOOLS, assistant


async def usage_of(ask, *messages, **fields):
    usage = (await ask(*messages, **fields)).usages[0]
    return usage.prompt_tokens, usage.prompt_tokens_details.cached_tokens


async def test_the_same_request_costs_the_same(ask):
    assert await usage_of(ask, "hello") == await usage_of(ask, "hello")


async def test_four_more_bytes_are_one_more_token(ask):
    short, _ = await usage_of(ask, "a" * 400)
    long, _ = await usage_of(ask, "a" * 800)
    assert long - short == 100


async def test_tools_are_part_of_the_prompt(ask):
    without, _ = await usage_of(ask, "hello", tools=TOOLS[:1])
    with_all, _ = await usage_of(ask, "hello", tools=TOOLS)
    assert with_all > without


async def test_the_first_request_is_not_cached(ask):
    assert (await usage_of(ask, LONG))[1] == 0


async def test_a_longer_conversation_hits_the_cache_up_to_where_it_differs(ask):
    first, _ = await usage_of(ask, LONG)
    second, cached = await usage_of(ask, LONG, assistant("Nice."), "hello")
    assert 1024 <= cached <= first < second
    assert cached % 128 == 0
    assert first - cached < 128


async def test_a_short_prompt_is_never_cached(ask):
    await usage_of(ask, "hello")
    assert (await usage_of(ask, "hello"))[1] == 0


async def test_a_different_start_misses_the_cache(ask):
    await usage_of(ask, LONG)
    assert (await usage_of(ask, f"x{LONG}"))[1] == 0


async def test_other_tools_miss_the_cache(ask):
    await usage_of(ask, LONG)
    assert (await usage_of(ask, LONG, tools=TOOLS[1:]))[1] == 0


async def test_another_model_misses_the_cache(ask):
    await usage_of(ask, LONG)
    assert (await usage_of(ask, LONG, model="scripted+azure"))[1] == 0


async def test_the_best_of_the_earlier_prompts_counts(ask):
    await usage_of(ask, LONG, assistant("Nice."), "hello")
    await usage_of(ask, "something else")
    assert (await usage_of(ask, LONG))[1] >= 1024


async def test_thinking_is_part_of_the_completion(ask):
    usage = (await ask("think about pizza")).usages[0]
    assert 0 < usage.completion_tokens_details.reasoning_tokens < usage.completion_tokens
    assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens


async def test_the_arguments_of_calls_are_part_of_the_completion(ask):
    assert (await ask("switch on the lamp")).usages[0].completion_tokens > 0


async def test_an_empty_answer_costs_no_completion(ask, server):
    server.fault("empty_answer")
    assert (await ask("hello")).usages[0].completion_tokens == 0


@given(st.binary(), st.binary(), st.binary())
def test_a_common_prefix_is_the_longest_one(start, one, other):
    length = common_prefix(start + one, start + other)
    pairs = zip(start + one, start + other, strict=False)
    assert length == len(list(takewhile(lambda pair: pair[0] == pair[1], pairs)))


@pytest.mark.parametrize("size", [0, 1, 1_000_000])
def test_equal_bytes_are_common_whole(size):
    assert common_prefix(b"a" * size, b"a" * size) == size


async def test_figures_are_reported_as_they_were_set(ask, server):
    server.change(figures={"prompt_tokens": "-5", "cached_tokens": '"many"', "completion_tokens": None})

    usage = (await ask("hello")).usages[0]

    assert (usage.prompt_tokens, usage.prompt_tokens_details.cached_tokens) == (-5, "many")
    assert usage.completion_tokens is None
    assert usage.total_tokens > 0
