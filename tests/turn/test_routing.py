"""Tests for the route of an input. The tables serve as documentation."""

import pytest

from custom_components.windowed_conversation.turn.routing import (
    LONGEST_COMMAND,
    Decision,
    Reason,
    Route,
    Routing,
    asks_back,
    first_choice,
)
from custom_components.windowed_conversation.window import Message, ToolCall

COMMAND = "turn on the light"
LETTER = "x" * (LONGEST_COMMAND + 1)

NOW = 1_800_000_000.0


@pytest.mark.parametrize(
    ("routing", "text", "route", "reason"),
    [
        (Routing.LOCAL_FIRST, COMMAND, Route.LOCAL, Reason.LOCAL_MATCH),
        (Routing.LOCAL_FIRST, LETTER[1:], Route.LOCAL, Reason.LOCAL_MATCH),
        (Routing.LOCAL_FIRST, LETTER, Route.LLM, Reason.TOO_LONG),
        (Routing.LLM_ONLY, COMMAND, Route.LLM, Reason.LLM_ONLY),
        (Routing.LLM_ONLY, LETTER, Route.LLM, Reason.LLM_ONLY),
        (Routing.LOCAL_ONLY, COMMAND, Route.LOCAL, Reason.LOCAL_ONLY),
        (Routing.LOCAL_ONLY, LETTER, Route.LOCAL, Reason.LOCAL_ONLY),
    ],
)
def test_first_choice(routing: Routing, text: str, route: Route, reason: Reason) -> None:
    assert first_choice(routing, text) == Decision(route, reason)


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
    assert asks_back(last, NOW) is asks
