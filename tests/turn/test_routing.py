"""Tests for the route of an input. The tables serve as documentation."""

import pytest

from custom_components.windowed_conversation.turn.routing import (
    MAX_COMMAND_CHARS,
    Route,
    RouteDecision,
    RouteReason,
    RoutingMode,
    decide_first_route,
    expects_reply,
    is_echo,
)
from custom_components.windowed_conversation.window import Message, ToolCall

COMMAND = "turn on the light"
LONG_TEXT = "x" * (MAX_COMMAND_CHARS + 1)

NOW = 1_800_000_000.0


@pytest.mark.parametrize(
    ("routing", "text", "route", "reason"),
    [
        (RoutingMode.LOCAL_FIRST, COMMAND, Route.LOCAL, RouteReason.LOCAL_MATCH),
        (RoutingMode.LOCAL_FIRST, LONG_TEXT[1:], Route.LOCAL, RouteReason.LOCAL_MATCH),
        (RoutingMode.LOCAL_FIRST, LONG_TEXT, Route.MODEL, RouteReason.TOO_LONG),
        (RoutingMode.MODEL_ONLY, COMMAND, Route.MODEL, RouteReason.MODEL_ONLY),
        (RoutingMode.MODEL_ONLY, LONG_TEXT, Route.MODEL, RouteReason.MODEL_ONLY),
        (RoutingMode.LOCAL_ONLY, COMMAND, Route.LOCAL, RouteReason.LOCAL_ONLY),
        (RoutingMode.LOCAL_ONLY, LONG_TEXT, Route.LOCAL, RouteReason.LOCAL_ONLY),
    ],
)
def test_first_choice(routing: RoutingMode, text: str, route: Route, reason: RouteReason) -> None:
    assert decide_first_route(routing, text) == RouteDecision(route, reason)


@pytest.mark.parametrize(
    ("last", "asks"),
    [
        (Message.assistant("Which size would you like?", created=NOW - 5), True),
        (Message.assistant("Which size?  \n", created=NOW - 5), True),
        (Message.assistant("Ποιο μέγεθος;", created=NOW - 5), True),
        (Message.assistant("什么尺寸？", created=NOW - 5), True),
        (Message.assistant("Which size?", created=NOW - 300), True),
        (Message.assistant("Which size?", created=NOW - 301), False),
        (Message.assistant("Which size?", created=NOW), True),
        (Message.assistant("Which size?", created=NOW + 3600), False),
        (Message.assistant("Which size?"), False),
        (Message.assistant("Large? Done.", created=NOW - 5), False),
        (Message.assistant("", created=NOW - 5), False),
        (Message.assistant(tool_calls=(ToolCall("call_1", "a", {}),), created=NOW - 5), False),
        (Message.user("Which size?", created=NOW - 5), False),
        (Message.system("Which size?", created=NOW - 5), False),
        (Message.tool("call_1", "a", "Which size?", created=NOW - 5), False),
    ],
)
def test_agent_waits_for_an_answer_to_its_own_question(last: Message, asks: bool) -> None:
    assert expects_reply(last, NOW) is asks


ECHOES = (
    ("turned on the kitchen light", "Turned on the kitchen light.", True),
    ("shall I turn it off again", "It is still on. Shall I turn it off again?", True),
    ("It is still on, shall I turn it off again?", "It is still on. Shall I turn it off again?", True),
    ("厨房的灯已经打开了", "好的。厨房的灯已经打开了。", True),
    ("turn on the kitchen light", "Turned on the kitchen light.", False),
    ("turn on the kitchen light", "Shall I turn on the kitchen light?", False),
    ("turn on the kitchen light", "You can say: turn on the kitchen light.", False),
    ("it is still on", "It is still on. Shall I turn it off again?", False),
    ("kitchen light", "Which one? Kitchen light?", False),
    ("yes", "Yes?", False),
    ("5 degrees in the living room", "It is 21.5 degrees in the living room.", False),
    ("turned on the kitchen light and what now", "Turned on the kitchen light.", False),
    ("厨房的灯", "好的。厨房的灯。", False),
    ("", "", False),
)


def test_echo_has_the_words_of_the_last_whole_sentences() -> None:
    assert [is_echo(text, answer) for text, answer, _ in ECHOES] == [expected for *_, expected in ECHOES]
