"""Tests for guards against repetition: no other agent acts after tools ran, and no retry follows the first token."""

from dataclasses import dataclass, replace

import pytest

from custom_components.windowed_conversation.providers.errors import ContextOverflow, Unavailable
from custom_components.windowed_conversation.turn.model import Question
from tests.providers.byte_server import ByteServer, event, text

from .answers import calls, said
from .conftest import Take
from .world import Home

OVERFLOW = event({"error": {"message": "x", "type": "invalid_request_error", "code": "context_length_exceeded"}})


@dataclass
class Stranger:
    """An agent of another integration that switches the light on itself; `asked` counts the calls of `answer`."""

    home: Home
    agent_id: str = "conversation.stranger"
    asked: int = 0

    async def answer(self) -> str:
        """See `FallbackAgent.answer`."""
        self.asked += 1
        await self.home.tools["intent__HassTurnOn"](name="lamp")
        return "It is on."


@pytest.fixture
def stranger(home: Home) -> Stranger:
    return Stranger(home)


async def test_agent_of_another_integration_is_not_asked_after_tools_ran(
    take: Take, byte_question: Question, byte_server: ByteServer, home: Home, stranger: Stranger
) -> None:
    byte_server.set_reply(calls({"name": "lamp"}))
    byte_server.add_reply(b"")

    outcome = await take("switch on the lamp", asked=replace(byte_question, fallback_agents=(stranger,)))

    assert isinstance(outcome.error, Unavailable)
    assert (home.ran, stranger.asked) == (["on lamp"], 0)


async def test_agent_of_another_integration_is_asked_before_tools_ran(
    take: Take, byte_question: Question, byte_server: ByteServer, home: Home, stranger: Stranger
) -> None:
    byte_server.set_reply(b"")

    outcome = await take("switch on the lamp", asked=replace(byte_question, fallback_agents=(stranger,)))

    assert (outcome.sent_text, home.ran) == ("It is on.", ["on lamp"])


async def test_answer_that_overflows_after_its_first_token_is_not_asked_for_again(
    take: Take, byte_question: Question, byte_server: ByteServer
) -> None:
    byte_server.set_reply(text("Once upon a time"), OVERFLOW)
    byte_server.add_reply(said("A whole story."))

    outcome = await take("tell me a story", asked=byte_question)

    assert isinstance(outcome.error, ContextOverflow)
    assert (outcome.sent_text, len(byte_server.requests)) == ("Once upon a time", 1)
