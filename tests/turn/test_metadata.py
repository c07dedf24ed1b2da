"""Tests that filter speech and metadata, cut into pieces at every position."""

import pytest

from custom_components.windowed_conversation.providers.events import TextDelta
from custom_components.windowed_conversation.turn.speech.speech_filter import SpeechFilter
from custom_components.windowed_conversation.window import INTERRUPTED_ANSWER
from custom_components.windowed_conversation.window.tool_results import STUB_PREFIX

from .spoken import ALL_NOTES, CONTEXT, JSON_CALL, RECALL, RECALL_SECTIONS, SECTIONS, TIME, TOOLS, filter_pieces


def cuts(text: str) -> list[list[str]]:
    """Return the text in one piece, in pieces of several equal sizes, and in two pieces at every position."""
    sizes = [[text[at : at + size] for at in range(0, len(text), size)] for size in (1, 2, 3, 7, 10)]
    return [[text], *sizes, *([text[:at], text[at:]] for at in range(1, len(text)))]


def spoken_at_any_cut(text: str) -> set[str]:
    return {filter_pieces(pieces)[0] for pieces in cuts(text)}


def test_thinking_is_kept_apart_at_any_border(subtests: pytest.Subtests) -> None:
    for size in range(1, 12):
        for tag in ["think", "thinking"]:
            with subtests.test(tag=tag, size=size):
                text = f"<{tag}>The user says <hello>.\n</{tag}>\n\nHello there!"

                spoken, thought = filter_pieces(text[at : at + size] for at in range(0, len(text), size))

                assert spoken == "Hello there!"
                assert thought == "The user says <hello>.\n"


SPOKEN_AND_THOUGHT = [
    ("Hello.", "Hello.", ""),
    ("\n\n Hello. ", "Hello. ", ""),
    ("  \n ", "", ""),
    ("One. <think>two</think> Three.", "One. Three.", "two"),
    ("One.<think>two</think> Three.", "One. Three.", "two"),
    ("<think>one</think><think>two</think>Three.", "Three.", "onetwo"),
    ("<think>never closed", "", "never closed"),
    ("Hello.<think></think>", "Hello.", ""),
    ("never opened</think>Hello.", "never openedHello.", ""),
    ("<think>a <thinking> b</think> c", "c", "a <thinking> b"),
    ("Hello.<|im_end|>", "Hello.", ""),
    ("Hello.<|eot_id|><|end|>", "Hello.", ""),
    (f"{CONTEXT}\n\nHello.", "Hello.", ""),
    (f"{RECALL}\n\nHello.", "Hello.", ""),
    (f"{RECALL_SECTIONS}\n\nHello.", "Hello.", ""),
    (f"You wrote: {CONTEXT}\n\nhello", "You wrote: hello", ""),
    (f"<think>{CONTEXT} hm</think>Hello.", "Hello.", f"{CONTEXT} hm"),
    ("[CONTEXT: never closed", "", ""),
    ("[contexts: other] 2 < 3, a [list], <b>bold</b>", "[contexts: other] 2 < 3, a [list], <b>bold</b>", ""),
    ("1 <", "1 <", ""),
    ("<thin", "<thin", ""),
]


def test_spoken_and_thought(subtests: pytest.Subtests) -> None:
    for text, spoken, thought in SPOKEN_AND_THOUGHT:
        with subtests.test(text=text):
            assert filter_pieces([text]) == (spoken, thought)


ANSWERS_WITH_METADATA = [
    f"{CONTEXT}\n\nHello.",
    f"{CONTEXT.lower()} Hello.",
    f"[Context : {CONTEXT[9:]}Hello.",
    f"{SECTIONS}\n\nHello.",
    f"{SECTIONS}\nHello.".replace("\n", "\r\n"),
    f"<think>hm</think>\n\n{SECTIONS}\n\nHello.",
    *(f"{note}\nHello." for note in ALL_NOTES),
    *(f"{note} Hello." for note in ALL_NOTES),
    *(f"Hello.{note}" for note in ALL_NOTES),
    f"{STUB_PREFIX}GetState {{}}: 5000 tokens, beginning with [[{{…]\nHello.",
    "<THINK>hm</Think>Hello.",
    "<|channel|>analysis<|message|>hmm<|end|><|start|>assistant<|channel|>final<|message|>Hello.",
    "<|channel|>analysis<|message|>hmm<|start|>assistant<|channel|>final<|message|>Hello.<|return|>",
    "<|channel|>commentary to=functions.HassTurnOn <|constrain|>json<|message|>{}<|call|>Hello.",
    "<|start|>assistant<|channel|>final <|constrain|>text<|message|>Hello.",
    "<|start|>functions.GetState to=assistant<|channel|>commentary<|message|>{}<|end|>Hello.",
    "<|im_start|>assistant\nHello.<|im_end|>",
    "<|start_header_id|>assistant<|end_header_id|>\n\nHello.<|eot_id|>",
    "Hello.<\uff5cend\u2581of\u2581sentence\uff5c>",
    "tool_call: HassTurnOn(name=\"a :)\", area=['Ada\\'s (big) room'])\nHello.",
    "tool_call: HassTurnOn(name=Ada's lamp) Hello.",
    "Tool_Call: HassTurnOn\nHello.",
    f"tool_calls:\n[{JSON_CALL}]\nHello.",
    "tool_call:\nHello.",
    f"<tool_call>\n{JSON_CALL}\n</tool_call>\nHello.",
    '[TOOL_CALLS] [{"name": "HassTurnOn", "arguments": {"name": "]"}}] Hello.',
    '[TOOL_CALLS]HassTurnOn[ARGS]{"name": "a"}[TOOL_CALLS]GetState[ARGS]{}\nHello.',
    f"<|tool_call|>[{JSON_CALL}]<|/tool_call|>Hello.",
    '<function=HassTurnOn>{"name": "a"}</function>Hello.',
    "<function=a>\n<parameter=name>\nlamp\n</parameter>\n</function>\n</tool_call>\nHello.",
    f"<|python_tag|>{JSON_CALL}<|eom_id|>Hello.",
    f"<|tool_calls_section_begin|><|tool_call_begin|>{JSON_CALL}<|tool_calls_section_end|>Hello.",
    f"<\uff5ctool\u2581calls\u2581begin\uff5c>{JSON_CALL}<\uff5ctool\u2581calls\u2581end\uff5c>Hello.",
    f"{JSON_CALL}\nHello.",
    f"\n {JSON_CALL} {JSON_CALL} Hello.",
    f"[{JSON_CALL}, {JSON_CALL}]\nHello.",
    f"```json\n{JSON_CALL}\n```\nHello.",
    f"``` [ {JSON_CALL} ]```\nHello.",
    "```tool_code\nprint(turn_on('lamp'))\n```\nHello.",
    '{\n  "name" : "GetState",\n  "parameters": {}\n}\nHello.',
]


def test_metadata_is_not_spoken_at_any_cut(subtests: pytest.Subtests) -> None:
    for text in ANSWERS_WITH_METADATA:
        with subtests.test(text=text):
            assert {spoken.strip() for spoken in spoken_at_any_cut(text)} == {"Hello."}


ANSWERS_LIKE_METADATA = [
    "a < b, c <| d |> e, <b>bold</b>, <thinker>, < think>",
    "[1] and [context] and [the list], [Cut: no], [What was said?]",
    "# Plan\n\n## Time\nIt is five.\n\n## Speaker\nThe one in the attic.\n\n## Area\n40 square metres",
    "## Shopping list\n- milk\n- tea\n## Times\nMonday 2026-11-23 08:05",
    f"It says {TIME} there.",
    "x\n    ## Time\nMonday 2026-11-23 08:05",
    "Say tool_call: HassTurnOn() to call a tool.\nTools: none\ntool_calling: no\ntool call: no",
    'x {"name": "HassTurnOn", "arguments": {}}',
    '{"name": "Elsewhere", "arguments": {}}',
    '{"name": "Ada", "age": 36}',
    '[{"name": "Ada", "arguments": []}]',
    '```json\n{"name": "Ada"}\n```',
    f"Like this:\n```json\n{JSON_CALL}\n```",
    "{a} = {x | x < 3}",
    "```python\ndef f(x: list[int]) -> dict[str, int]:\n    return {'a': x[0] << 2}\n```",
    "Type <|channel",
    "Type [CONTEXT",
    f"Type {INTERRUPTED_ANSWER[:20]}",
    "To turn\nTo\ntool",
    "A\n\n\n  B  \n# C\n",
]


def test_whatever_else_looks_like_metadata_is_spoken_at_any_cut(subtests: pytest.Subtests) -> None:
    for text in ANSWERS_LIKE_METADATA:
        with subtests.test(text=text):
            assert spoken_at_any_cut(text) == {text}


@pytest.mark.parametrize(
    ("text", "has_call"),
    [
        (JSON_CALL, True),
        ("Well.\ntool_call: HassTurnOn()", True),
        ("<|channel|>commentary to=functions.HassTurnOn<|message|>{}", True),
        ("<|channel|>commentary<|message|>I look.", False),
        (f"<think>{JSON_CALL}</think>Hello.", False),
    ],
)
def test_call_in_a_text_is_known(*, text: str, has_call: bool) -> None:
    speech = SpeechFilter(TOOLS)
    speech.feed(text)

    assert speech.has_call is has_call


def test_tool_that_was_not_offered_is_not_called() -> None:
    speech = SpeechFilter()

    assert list(speech.feed(JSON_CALL)) == [TextDelta(JSON_CALL)]
