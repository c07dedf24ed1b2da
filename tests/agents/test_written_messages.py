"""Messages as JSON for the record of turns: written once, and cached no longer than they are in use."""

import json

from custom_components.windowed_conversation.agents.written_messages import WrittenMessages
from custom_components.windowed_conversation.window import EstimatedCounter, Message, Window, WindowPolicy


def test_the_same_message_is_written_once() -> None:
    messages, said = WrittenMessages(), Message.user("hello")

    assert messages.write(said) is messages.write(said)
    assert json.loads(messages.write(said)) == {"role": "user", "content": "hello"}


def test_equal_messages_are_cached_apart() -> None:
    messages, said, again = WrittenMessages(), Message.user("hello"), Message.user("hello")
    messages.write(said)
    messages.write(again)
    del again

    assert len(messages) == 1


def test_a_message_that_nobody_holds_is_not_cached() -> None:
    messages = WrittenMessages()
    messages.write(Message.user("hello"))

    assert len(messages) == 0


def test_the_cache_holds_what_the_window_holds() -> None:
    messages = WrittenMessages()
    window = Window("conversation", WindowPolicy(history_tokens=200), EstimatedCounter())
    for number in range(100):
        window.record([Message.user(f"question {number}"), Message.assistant(f"answer {number}")])
        for message in window.messages():
            messages.write(message)

    assert 0 < len(messages) == len(window.messages()) < 100
