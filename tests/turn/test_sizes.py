"""The size of a request, which is the same for everyone who asks."""

from dataclasses import replace
from typing import cast

from custom_components.windowed_conversation.agents.cache_health import SentRequest
from custom_components.windowed_conversation.providers.events import Provider, Request, ToolSchema, Usage
from custom_components.windowed_conversation.providers.sizes import messages_tokens, request_tokens, tools_tokens
from custom_components.windowed_conversation.turn.budget import Budget
from custom_components.windowed_conversation.turn.ports import Billed, Model, PromptFingerprints
from custom_components.windowed_conversation.window import Message, WindowPolicy
from custom_components.windowed_conversation.window.tokens import TextKind


class Kinds:
    """Counts a text by what it is: a token for what is fixed, ten for what was said, a hundred for tools."""

    def count(self, text: str) -> int:
        return self.count_as(TextKind.PROSE, text)

    def count_as(self, kind: TextKind, text: str) -> int:
        return {TextKind.FIXED: 1, TextKind.PROSE: 10, TextKind.TOOLS: 100}[kind]


FRAME = 4
TOOL = ToolSchema("turn_on", "Turn something on.", {})
REQUEST = Request("model", (Message.system("You are a voice assistant."), Message.user("hello")), (TOOL, TOOL))


def test_request_is_its_messages_and_its_tools_each_counted_as_what_it_is() -> None:
    assert messages_tokens(REQUEST.messages, Kinds()) == 1 + 10 + 2 * FRAME
    assert tools_tokens(REQUEST.tools, Kinds()) == 2
    assert request_tokens(REQUEST, Kinds()) == 13 + 2 * FRAME


def test_message_that_was_counted_is_not_counted_again() -> None:
    counted = replace(REQUEST, messages=(replace(REQUEST.messages[0], tokens=700), REQUEST.messages[1]))

    assert request_tokens(counted, Kinds()) == 700 + 10 + FRAME + 2


def test_cache_is_judged_by_the_same_size() -> None:
    nobody = cast("Provider", None)
    model = Model("agent", nobody, REQUEST.model, Budget(WindowPolicy()))

    sent = SentRequest.of(Billed(model, REQUEST, Usage()), PromptFingerprints(1, 2), Kinds())

    assert sent.fixed == messages_tokens(REQUEST.messages[:1], Kinds()) + tools_tokens(REQUEST.tools, Kinds())
