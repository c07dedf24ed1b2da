"""Tests for pictures that a tool has seen: their place in the requests of the turn, and what their size proves."""

from dataclasses import replace
from typing import override

import pytest

from custom_components.windowed_conversation.providers import count_request_tokens
from custom_components.windowed_conversation.turn.limits import Budget
from custom_components.windowed_conversation.turn.model import Question
from custom_components.windowed_conversation.turn.state import Turn
from custom_components.windowed_conversation.turn.turn import run_turn
from custom_components.windowed_conversation.window import Attachment, Message, Role, ToolCall, Window, WindowPolicy

from .world import Ear, Home, make_turn

PICTURE = Attachment("image/jpeg", b"\xff\xd8\xff picture", "Front door")
PICTURE_TOKENS = 1600
LOOK_AND_ACT = "is the kitchen light on? if not, switch it on"
CONTEXT_TOKENS = 5000


class Eyes(Ear):
    """A reply whose first tool call sees a picture."""

    turn: Turn

    @override
    async def _run(self, call: ToolCall) -> str:
        assert self.turn.run is not None
        pictures = self.turn.run.question.pictures
        if not pictures:
            pictures[call.id] = PICTURE
        return await super()._run(call)


@pytest.fixture
def eyes(home: Home) -> Eyes:
    return Eyes(home.tools)


async def look(window: Window, question: Question, eyes: Eyes) -> Turn:
    """Take a turn with three requests, in which the first tool call sees a picture."""
    model = replace(question.model, profile=replace(question.model.profile, images=True))
    eyes.turn = make_turn(window, LOOK_AND_ACT, replace(question, model=model), eyes)
    await run_turn(eyes.turn)
    return eyes.turn


async def test_picture_is_with_its_result_in_each_later_request(window: Window, question: Question, eyes: Eyes) -> None:
    turn = await look(window, question, eyes)

    seen = [[each.role for each in attempt.request.messages if each.attachments] for attempt in turn.attempts]
    assert seen == [[], [Role.TOOL], [Role.TOOL]]


async def test_window_has_no_picture(window: Window, question: Question, eyes: Eyes) -> None:
    await look(window, question, eyes)

    assert [each.attachments for each in window.messages() if each.attachments] == []


async def test_picture_is_counted_in_the_planned_size(window: Window, question: Question, eyes: Eyes) -> None:
    turn = await look(window, question, eyes)

    assert turn.run is not None
    assert PICTURE_TOKENS < turn.run.request_tokens < PICTURE_TOKENS + 1000


async def test_answer_to_a_picture_proves_no_size(window: Window, question: Question, eyes: Eyes) -> None:
    await look(window, question, eyes)

    assert question.model.size.get_context_tokens(PICTURE_TOKENS) == PICTURE_TOKENS


async def test_history_makes_room_for_a_picture(window: Window, question: Question, eyes: Eyes) -> None:
    for number in range(30):
        window.add_exchange((Message.user(f"question {number} " * 30), Message.assistant("yes " * 30)))
    budget = Budget(WindowPolicy(), CONTEXT_TOKENS, max_answer_tokens=200)
    question = replace(question, model=replace(question.model, budget=budget))

    turn = await look(window, question, eyes)

    sizes = [count_request_tokens(attempt.request) for attempt in turn.attempts]
    assert sizes[0] > CONTEXT_TOKENS - PICTURE_TOKENS
    assert max(sizes) <= CONTEXT_TOKENS
