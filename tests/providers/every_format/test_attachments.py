"""Tests for the note that replaces an unseen attachment, and for its cost, which is below the counted tokens."""

from dataclasses import replace

import pytest

from custom_components.windowed_conversation.providers import UNSEEN_NOTE
from custom_components.windowed_conversation.providers.events import Provider, Request
from custom_components.windowed_conversation.providers.models import UNKNOWN_MODEL
from custom_components.windowed_conversation.window import Attachment, EstimatedCounter, Message, count_message_tokens
from tests.providers.byte_server import ByteServer
from tests.providers.heard import Heard
from tests.providers.wires.parts import Text, Wire

from .conftest import QUESTION

IMAGE = Attachment("image/png", b"\x89PNG", "door.png")
PDF = Attachment("application/pdf", b"%PDF", "bill.pdf")


@pytest.fixture
def said(wire: Wire, provider: Provider, byte_server: ByteServer):
    """Return a function that sends a question with attachments and returns the text of the sent user message."""

    async def said(*attachments: Attachment, sees: bool, words: str = QUESTION) -> str:
        byte_server.set_reply(*wire.answer(Text(("yes",))))
        messages = (Message.user(words, attachments=attachments),)
        request = Request("model", messages, profile=replace(UNKNOWN_MODEL, images=sees))
        await Heard().read(provider.stream(request))
        return wire.request_text(byte_server.requests[-1])

    return said


@pytest.mark.parametrize("attachments", [(IMAGE,), (PDF,), (IMAGE, PDF), (IMAGE, IMAGE, PDF)])
async def test_model_that_cannot_see_is_told_of_each_attachment(said, attachments: tuple[Attachment, ...]) -> None:
    text = await said(*attachments, sees=False)

    assert text.count(UNSEEN_NOTE) == len(attachments)
    assert text.replace(UNSEEN_NOTE, "").strip() == QUESTION


async def test_attachment_without_words_is_words_to_a_model_that_cannot_see(said) -> None:
    assert await said(IMAGE, sees=False, words="") == UNSEEN_NOTE


async def test_model_that_sees_is_told_nothing(said) -> None:
    assert await said(IMAGE, sees=True) == QUESTION


async def test_question_without_attachments_is_as_it_was(said) -> None:
    assert await said(sees=False) == QUESTION


@pytest.mark.parametrize("attachment", [IMAGE, PDF, Attachment("audio/wav", b"RIFF")])
def test_note_costs_less_than_what_the_window_counts(attachment: Attachment) -> None:
    counter = EstimatedCounter()
    counted = count_message_tokens(Message.user(QUESTION, attachments=(attachment,)), counter)

    assert count_message_tokens(Message.user(f"{QUESTION}\n\n{UNSEEN_NOTE}"), counter) < counted
