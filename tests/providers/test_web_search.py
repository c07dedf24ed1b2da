"""Tests for the web searches of the vendors: requests, and events in the order in which each vendor sends them."""

from collections.abc import Iterable
import json
from typing import Any

import pytest

from custom_components.windowed_conversation.providers import (
    AnswerDone,
    Effort,
    Event,
    ModelSettings,
    Request,
    Source,
    Sources,
    TextDelta,
    ToolCallDone,
    ToolSchema,
    Usage,
    Vendor,
    WebSearch,
    find_profile,
)
from custom_components.windowed_conversation.providers.anthropic.decoding import MessageDecoder
from custom_components.windowed_conversation.providers.anthropic.encoding import encode_request as encode_anthropic
from custom_components.windowed_conversation.providers.decoder import Decoder
from custom_components.windowed_conversation.providers.errors import Incomplete
from custom_components.windowed_conversation.providers.gemini.decoding import GeminiDecoder
from custom_components.windowed_conversation.providers.gemini.encoding import encode_body as encode_gemini
from custom_components.windowed_conversation.providers.models import UNKNOWN_MODEL
from custom_components.windowed_conversation.providers.openai.chat_decoding import ChatDecoder
from custom_components.windowed_conversation.providers.openai.chat_encoding import (
    Dialect,
    EchoMode,
    encode_request as encode_chat,
)
from custom_components.windowed_conversation.providers.openai.responses_decoding import ResponseDecoder
from custom_components.windowed_conversation.providers.openai.responses_encoding import encode_request as encode_openai
from custom_components.windowed_conversation.window import Message, NativeData
from demo.model_server import find_anthropic_violations, find_gemini_violations, find_responses_violations
from demo.model_server.residue import seal_content
from demo.model_server.usage import encode_json

OPENAI, ANTHROPIC, GEMINI = "gpt-5.4", "claude-sonnet-4-5", "gemini-3.5-flash"
VENDORS = {"gpt": Vendor.OPENAI, "cla": Vendor.ANTHROPIC, "gem": Vendor.GOOGLE}
SEARCH = WebSearch("CH", "Europe/Zurich")
LOCATION = {"type": "approximate", "country": "CH", "timezone": "Europe/Zurich"}
TOOL = ToolSchema("turn_on", "Turn on.", {"type": "object", "properties": {}})
QUESTION = Message.user("any news?")
PAGE = Source("The page", "https://bbc.com/w?a=1")


def build_request(model: str, *messages: Message, search: WebSearch | None = SEARCH, **fields: Any) -> Request:
    """Return a request to a model with a tool, unless `tools` is given."""
    settings = ModelSettings(web_search=search, effort=fields.pop("effort", None))
    profile = find_profile(VENDORS.get(model[:3]), model)
    sent = {"tools": (TOOL,), "profile": profile, "settings": settings, **fields}
    return Request(model, messages or (QUESTION,), **sent)


def encode(request: Request) -> dict[str, Any]:
    """Return the body of a request in the format of its model's vendor."""
    match VENDORS[request.model[:3]]:
        case Vendor.OPENAI:
            return encode_openai(request, "openai_responses", {})
        case Vendor.ANTHROPIC:
            return encode_anthropic(request)
        case _:
            return encode_gemini(request)


def find_violations(request: Request) -> list[Any]:
    """Return the rules of the vendor that a request violates."""
    body = json.loads(json.dumps(encode(request)))
    match VENDORS[request.model[:3]]:
        case Vendor.OPENAI:
            return find_responses_violations(body)
        case Vendor.ANTHROPIC:
            return find_anthropic_violations(body)
        case _:
            return find_gemini_violations(body, request.model)


def decode(decoder: Decoder, events: Iterable[Any]) -> list[Event]:
    """Return the events of a complete answer."""
    return [*(found for event in events for found in decoder.on_event(event)), *decoder.on_end()]


def join_text(events: Iterable[Event]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextDelta))


def find_event[E: Event](events: Iterable[Event], kind: type[E]) -> E:
    """Return the only event of a kind."""
    (found,) = [event for event in events if isinstance(event, kind)]
    return found


# OpenAI


def iter_openai_item(at: int, item: dict[str, Any], *inner: dict[str, Any]) -> Iterable[dict[str, Any]]:
    yield {"type": "response.output_item.added", "output_index": at, "item": {**item, "status": "in_progress"}}
    yield from ({"output_index": at, **each} for each in inner)
    yield {"type": "response.output_item.done", "output_index": at, "item": item}


def iter_openai_text(at: int, text: str, *urls: str) -> Iterable[dict[str, Any]]:
    cited = [
        {"type": "url_citation", "url": url, "title": PAGE.title, "start_index": 0, "end_index": 9} for url in urls
    ]
    deltas = ({"type": "response.output_text.delta", "delta": text},)
    added = ({"type": "response.output_text.annotation.added", "annotation": each} for each in cited)
    yield from iter_openai_item(at, {"type": "message", "id": f"msg_{at}"}, *deltas, *added)


def iter_openai_search(at: int, action: dict[str, Any]) -> Iterable[dict[str, Any]]:
    stages = ({"type": f"response.web_search_call.{name}"} for name in ("in_progress", "searching", "completed"))
    yield from iter_openai_item(at, {"type": "web_search_call", "id": f"ws_{at}", "action": action}, *stages)


OPENAI_SOURCES = [{"type": "url", "url": PAGE.url}, {"type": "url", "url": "https://b.c"}, {"type": "api", "name": "x"}]
OPENAI_EVENTS = (
    *iter_openai_text(0, "Let me look."),
    *iter_openai_search(1, {"type": "search", "queries": ["news"], "sources": OPENAI_SOURCES}),
    *iter_openai_search(2, {"type": "open_page", "url": PAGE.url}),
    *iter_openai_text(3, "All is well.", f"{PAGE.url}&utm_source=openai", f"{PAGE.url}&utm_source=openai"),
    {"type": "response.completed", "response": {"usage": {"input_tokens": 8100, "output_tokens": 50}}},
)


def test_openai_answer_has_one_space_its_sources_and_its_searches() -> None:
    events = decode(ResponseDecoder(build_request(OPENAI)), OPENAI_EVENTS)

    assert join_text(events) == "Let me look. All is well."
    assert find_event(events, Sources).sources == (PAGE, Source("", "https://b.c"))
    assert find_event(events, Usage) == Usage(input=8100, output=50, searches=1)


def test_openai_answer_with_a_search_is_valid_in_the_next_request() -> None:
    events = decode(ResponseDecoder(build_request(OPENAI)), OPENAI_EVENTS)
    residue = find_event(events, AnswerDone).native_value
    native = None if residue is None else NativeData("openai_responses", OPENAI, residue)
    answer = Message.assistant(join_text(events), native=native)

    request = build_request(OPENAI, QUESTION, answer, Message.user("and now?"))

    assert find_violations(request) == []
    assert "web_search_call" not in json.dumps(encode(request)["input"])


def test_openai_request_offers_the_search_with_its_sources() -> None:
    body = encode(build_request(OPENAI))

    assert body["tools"][-1] == {"type": "web_search", "user_location": LOCATION}
    assert "web_search_call.action.sources" in body["include"]


def test_openai_location_is_approximate_even_if_nothing_is_known() -> None:
    body = encode(build_request(OPENAI, search=WebSearch()))

    assert body["tools"][-1]["user_location"] == {"type": "approximate"}


def test_openai_search_is_never_sent_with_minimal_effort() -> None:
    request = build_request("gpt-5-mini", effort=Effort.NONE)

    assert encode(request)["reasoning"] == {"effort": "low"}
    assert find_violations(request) == []


# Anthropic


def iter_block(index: int, block: dict[str, Any], *deltas: dict[str, Any]) -> Iterable[dict[str, Any]]:
    yield {"type": "content_block_start", "index": index, "content_block": block}
    yield from ({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas)
    yield {"type": "content_block_stop", "index": index}


def iter_text_block(index: int, text: str, *citations: dict[str, Any]) -> Iterable[dict[str, Any]]:
    cited = ({"type": "citations_delta", "citation": citation} for citation in citations)
    yield from iter_block(index, {"type": "text", "text": ""}, {"type": "text_delta", "text": text}, *cited)


def iter_search_blocks(index: int, number: int = 0) -> Iterable[dict[str, Any]]:
    called = {"type": "server_tool_use", "id": f"srvtoolu_{number}", "name": "web_search", "input": {}}
    asked = ({"type": "input_json_delta", "partial_json": part} for part in ("", '{"query": ', '"news"}'))
    yield from iter_block(index, called, *asked)
    yield {"type": "ping"}
    page = {"type": "web_search_result", "url": PAGE.url, "title": PAGE.title, "page_age": None}
    found = [{**page, "encrypted_content": seal_content(ANTHROPIC, b"x" * 5000)}]
    result = {"type": "web_search_tool_result", "tool_use_id": f"srvtoolu_{number}", "content": found}
    yield from iter_block(index + 1, result)


def end_message(reason: str, searches: int) -> list[dict[str, Any]]:
    usage = {"output_tokens": 50, "server_tool_use": {"web_search_requests": searches}}
    return [{"type": "message_delta", "delta": {"stop_reason": reason}, "usage": usage}, {"type": "message_stop"}]


CITATION = {"type": "web_search_result_location", "url": PAGE.url, "title": PAGE.title, "cited_text": "Well."}
MESSAGE_START = {"type": "message_start", "message": {"usage": {"input_tokens": 8100, "output_tokens": 1}}}
SEARCHED = [MESSAGE_START, *iter_text_block(0, "Let me look."), *iter_search_blocks(1)]
REST = [*iter_text_block(3, "All is "), *iter_text_block(4, "well", CITATION), *iter_text_block(5, ".")]
LIGHT = {"type": "tool_use", "id": "toolu_1", "name": "turn_on", "input": {}}


def test_anthropic_answer_has_one_space_its_sources_and_its_searches() -> None:
    decoder = MessageDecoder(build_request(ANTHROPIC), thinks=False)
    events = decode(decoder, [*SEARCHED, *REST, *end_message("end_turn", 1)])

    assert join_text(events) == "Let me look. All is well."
    assert find_event(events, Sources).sources == (PAGE,)
    assert find_event(events, Usage) == Usage(input=8100, output=50, searches=1)
    assert find_event(events, AnswerDone).native_value is find_event(events, AnswerDone).turn_value is None


def test_anthropic_blocks_of_a_search_go_back_in_their_order_until_the_turn_ends() -> None:
    decoder = MessageDecoder(build_request(ANTHROPIC), thinks=False)
    events = decode(decoder, [*SEARCHED, *REST, *iter_block(6, LIGHT), *end_message("tool_use", 1)])
    call = find_event(events, ToolCallDone).call
    native = NativeData("anthropic", ANTHROPIC, find_event(events, AnswerDone).turn_value)
    answer = Message.assistant(join_text(events), tool_calls=(call,), native=native)

    request = build_request(ANTHROPIC, QUESTION, answer, Message.tool(call.id, call.name, "ok"))
    blocks = encode(request)["messages"][1]["content"]

    assert find_violations(request) == []
    kinds = ("text", "server_tool_use", "web_search_tool_result", "text", "text", "text", "tool_use")
    assert tuple(block["type"] for block in blocks) == kinds
    assert blocks[1]["input"] == {"query": "news"}
    assert blocks[4]["citations"] == [CITATION]


def test_anthropic_answer_goes_on_after_a_pause() -> None:
    decoder = MessageDecoder(build_request(ANTHROPIC), thinks=False)
    before = decode(decoder, [*SEARCHED, *end_message("pause_turn", 1)])
    sent_back = decoder.resume()
    after = decode(decoder, [MESSAGE_START, *REST, *end_message("end_turn", 0)])

    assert [block["type"] for block in sent_back] == ["text", "server_tool_use", "web_search_tool_result"]
    assert join_text([*before, *after]) == "Let me look. All is well."
    assert find_event([*before, *after], Usage) == Usage(input=16200, output=100, searches=1)


def test_anthropic_pause_without_a_search_is_an_error() -> None:
    decoder = MessageDecoder(build_request(ANTHROPIC, search=None), thinks=False)

    with pytest.raises(Incomplete):
        decode(decoder, [MESSAGE_START, *iter_text_block(0, "Let me"), *end_message("pause_turn", 0)])


def test_anthropic_results_that_are_too_large_are_not_sent_back() -> None:
    decoder = MessageDecoder(build_request(ANTHROPIC), thinks=False)
    huge = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_0", "content": [{"x": "y" * 2**20}]}
    search = [*SEARCHED, *iter_block(3, huge), *iter_block(4, LIGHT)]
    events = decode(decoder, [*search, *end_message("tool_use", 1)])

    assert find_event(events, AnswerDone).turn_value is None


def test_anthropic_thinking_stays_after_the_turn_without_its_searches() -> None:
    thinking = {"type": "thinking", "thinking": "Hm.", "signature": "EqQB"}
    deltas = {"type": "thinking_delta", "thinking": "Hm."}, {"type": "signature_delta", "signature": "EqQB"}
    decoder = MessageDecoder(build_request(ANTHROPIC), thinks=True)
    begun = [MESSAGE_START, *iter_block(0, {"type": "thinking", "thinking": "", "signature": ""}, *deltas)]
    searched = [*iter_text_block(1, "Let me look."), *iter_search_blocks(2), *iter_text_block(4, "Well.", CITATION)]
    events = decode(decoder, [*begun, *searched, *end_message("end_turn", 1)])

    assert find_event(events, AnswerDone).native_value == [thinking, {"type": "text"}, {"type": "text"}]


def test_anthropic_request_offers_five_searches_and_three_pages() -> None:
    search = {"type": "web_search_20250305", "name": "web_search", "max_uses": 5, "user_location": LOCATION}
    fetch = {"type": "web_fetch_20250910", "name": "web_fetch", "max_uses": 3, "max_content_tokens": 5000}

    tools = encode(build_request(ANTHROPIC))["tools"]

    assert tools[-2:] == [search, {**fetch, "cache_control": {"type": "ephemeral"}}]
    assert find_violations(build_request(ANTHROPIC)) == []


def test_anthropic_model_before_claude_4_fetches_no_pages() -> None:
    profile = find_profile(Vendor.ANTHROPIC, "claude-3-7-sonnet")

    assert encode(build_request(ANTHROPIC, profile=profile))["tools"][-1]["name"] == "web_search"


def test_anthropic_page_that_was_fetched_is_a_source_and_goes_back_within_the_turn() -> None:
    decoder = MessageDecoder(build_request(ANTHROPIC), thinks=False)
    called = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_fetch", "input": {"url": PAGE.url}}
    document = {"type": "document", "title": PAGE.title, "source": {"type": "text", "data": "All is well."}}
    page = {"type": "web_fetch_result", "url": PAGE.url, "content": document}
    result = {"type": "web_fetch_tool_result", "tool_use_id": "srvtoolu_1", "content": page}
    blocks = [*iter_block(0, called), *iter_block(1, result), *iter_text_block(2, "Well."), *iter_block(3, LIGHT)]

    events = decode(decoder, [MESSAGE_START, *blocks, *end_message("tool_use", 0)])

    assert find_event(events, Sources).sources == (PAGE,)
    assert find_event(events, AnswerDone).turn_value[:2] == [called, result]
    assert find_event(events, Usage).searches == 0


def test_anthropic_search_yields_to_own_tools_of_its_names() -> None:
    scripts = [ToolSchema(name, "A script.", {"type": "object"}) for name in ("web_fetch", "web_search")]
    request = build_request(ANTHROPIC, tools=tuple(scripts))

    assert [tool["name"] for tool in encode(request)["tools"]] == ["web_fetch", "web_search"]
    assert find_violations(request) == []


# OpenRouter


def test_openrouter_request_offers_its_search_beside_the_tools() -> None:
    request = build_request("vendor/model", profile=UNKNOWN_MODEL)

    body = encode_chat(request, Dialect.COMPATIBLE, "openai_chat openrouter.ai", EchoMode.VERBATIM, {})

    assert [tool["type"] for tool in body["tools"]] == ["function", "openrouter:web_search"]


def test_openrouter_answer_has_its_sources() -> None:
    cited = {"type": "url_citation", "url_citation": {"url": PAGE.url, "title": PAGE.title}}
    delta = {"content": "All is well.", "annotations": [cited, cited, {"type": "file"}]}
    chunks = [{"choices": [{"delta": delta}]}, {"choices": [{"delta": {}, "finish_reason": "stop"}]}]

    events = decode(ChatDecoder(build_request("vendor/model", profile=UNKNOWN_MODEL)), chunks)

    assert find_event(events, Sources).sources == (PAGE,)


# Gemini


def sign(part: dict[str, Any]) -> dict[str, Any]:
    return {**part, "thoughtSignature": seal_content(GEMINI, encode_json(part))}


def chunk(*parts: dict[str, Any], **candidate: Any) -> dict[str, Any]:
    usage = {"promptTokenCount": 120, "candidatesTokenCount": 50}
    return {"candidates": [{"content": {"parts": list(parts)}, **candidate}], "usageMetadata": usage}


def build_gemini_grounding(*queries: str) -> dict[str, Any]:
    web = {"uri": PAGE.url, "title": PAGE.title}
    return {"webSearchQueries": [*queries], "groundingChunks": [{"web": web}, {"web": web}, {}]}


INVOCATION = {"toolType": "GOOGLE_SEARCH_WEB", "id": "s1"}
GEMINI_PARTS = (
    sign({"toolCall": {**INVOCATION, "args": {"queries": ["news", "news today"]}}}),
    sign({"toolResponse": {**INVOCATION, "response": {"search_suggestions": "<div></div>"}}}),
)
GEMINI_SEARCH = [chunk({"text": "Let me look."}), *map(chunk, GEMINI_PARTS), chunk({"text": "All is well."})]
GEMINI_END = chunk({"text": ""}, finishReason="STOP", groundingMetadata=build_gemini_grounding("news", "news today"))


def test_gemini_answer_has_one_space_its_sources_and_its_searches() -> None:
    events = decode(GeminiDecoder(build_request(GEMINI)), [*GEMINI_SEARCH, GEMINI_END])

    assert join_text(events) == "Let me look. All is well."
    assert find_event(events, Sources).sources == (PAGE,)
    assert find_event(events, Usage) == Usage(input=120, output=50, searches=2)


def test_gemini_2_5_bills_one_search_for_each_request() -> None:
    events = decode(GeminiDecoder(build_request("gemini-2.5-flash", tools=())), [GEMINI_END])

    assert find_event(events, Usage).searches == 1


def test_gemini_parts_of_a_search_go_back_unchanged_until_the_turn_ends() -> None:
    light = sign({"functionCall": {"name": "turn_on", "args": {}, "id": "f1"}})
    decoder = GeminiDecoder(build_request(GEMINI))
    events = decode(decoder, [*GEMINI_SEARCH, chunk(light), chunk({"text": ""}, finishReason="STOP")])
    call = find_event(events, ToolCallDone).call
    native = NativeData("gemini", GEMINI, find_event(events, AnswerDone).turn_value)
    answer = Message.assistant(join_text(events), tool_calls=(call,), native=native)

    request = build_request(GEMINI, QUESTION, answer, Message.tool(call.id, call.name, "ok"))
    parts = encode(request)["contents"][1]["parts"]

    assert find_violations(request) == []
    assert parts == [{"text": "Let me look."}, *GEMINI_PARTS, {"text": "All is well."}, light]


@pytest.mark.parametrize(
    ("model", "fields", "tools", "config"),
    [
        (GEMINI, {}, ["functionDeclarations", "googleSearch"], {"includeServerSideToolInvocations": True}),
        (GEMINI, {"tools": ()}, ["googleSearch"], None),
        (GEMINI, {"tools": (), "may_call": False}, [], None),
        ("gemini-2.5-flash", {}, ["functionDeclarations"], None),
        ("gemini-2.5-flash", {"tools": ()}, ["googleSearch"], None),
    ],
)
def test_gemini_search_is_offered_where_it_is_allowed(
    model: str, fields: dict[str, Any], tools: list[str], config: dict[str, Any] | None
) -> None:
    body = encode(build_request(model, **fields))

    assert [name for tool in body.get("tools", []) for name in tool] == tools
    assert body.get("toolConfig") == config


# all vendors


@pytest.mark.parametrize("model", [OPENAI, ANTHROPIC, GEMINI])
@pytest.mark.parametrize("fields", [{}, {"may_call": False}, {"tools": ()}, {"tools": (), "may_call": False}])
def test_request_with_a_search_is_valid(model: str, fields: dict[str, Any]) -> None:
    assert find_violations(build_request(model, **fields)) == []


@pytest.mark.parametrize("model", [OPENAI, ANTHROPIC])
@pytest.mark.parametrize("tools", [(), (TOOL,)])
def test_request_that_forbids_calls_forbids_the_search(model: str, tools: tuple[ToolSchema, ...]) -> None:
    body = encode(build_request(model, tools=tools, may_call=False))

    assert body["tool_choice"] in ("none", {"type": "none"})


@pytest.mark.parametrize(
    ("can_search", "models"),
    [
        (False, "gpt-3.5-turbo gpt-4-turbo gpt-4.1-nano o1 o3-mini claude-3-haiku gemini-2.0-flash"),
        (True, "gpt-4o-mini gpt-4.1 gpt-5-nano o3 claude-3-7-sonnet-latest gemini-2.5-flash gemini-3.5-flash"),
    ],
)
def test_profile_says_whether_a_model_can_search(can_search: bool, models: str) -> None:
    profiles = {model: find_profile(VENDORS.get(model[:3], Vendor.OPENAI), model) for model in models.split()}

    assert {model for model, profile in profiles.items() if profile.web_search is not can_search} == set()


@pytest.mark.parametrize("url", ["javascript:alert(1)", "", None, 5, "https://a.b/" + "x" * 3000])
def test_source_without_a_usable_url_is_skipped(url: object) -> None:
    cited = {"type": "response.output_text.annotation.added", "annotation": {"url": url, "title": "x"}}
    events = decode(ResponseDecoder(build_request(OPENAI)), [cited, OPENAI_EVENTS[-1]])

    assert not [event for event in events if isinstance(event, Sources)]


def test_sources_and_their_titles_are_limited() -> None:
    added = "response.output_text.annotation.added"
    cited = ({"type": added, "annotation": {"url": f"https://a.b/{at}", "title": "x" * 999}} for at in range(99))
    events = decode(ResponseDecoder(build_request(OPENAI)), [*cited, OPENAI_EVENTS[-1]])
    sources = find_event(events, Sources).sources

    assert (len(sources), len(sources[0].title)) == (20, 200)
