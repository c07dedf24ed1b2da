"""Exchanges that a model is sent as plain text, because it refuses their tool calls, attachments or native data."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
import json

from ..providers import UNSEEN_NOTE
from ..window import Message, Role, ToolCall, Window

# The maximum length, in characters, of a call's arguments and of its result when they are sent as text: the result
# itself may be as long as the window.
_MAX_CHARS = 300

# Identifies an exchange by the time of its user message, which stays the same when the exchange is shortened.
type _ExchangeKey = float | None
type _ExchangeMessages = Sequence[Message]


class PlainTextExchanges:
    """Tracks the exchanges of a window that one model is sent as plain text."""

    def __init__(self) -> None:
        self._plain_keys: frozenset[_ExchangeKey] = frozenset()
        # The ended exchanges of the last request that was answered, in whichever form they were sent.
        self._answered: frozenset[_ExchangeKey] = frozenset()

    def apply_marks(self, messages: tuple[Message, ...]) -> tuple[Message, ...]:
        """Return the messages of a request, with the selected exchanges converted to plain text."""
        plain = self._plain_keys
        if not plain:
            return messages
        *ended, newest = _split(messages)
        texts = (_iter_plain_messages(part) if _exchange_key(part) in plain else part for part in ended)
        return (*chain.from_iterable(texts), *newest)

    def mark_suspects(self, window: Window, messages: tuple[Message, ...]) -> frozenset[_ExchangeKey]:
        """Send the ended exchanges whose form may have caused a refusal of these messages as text from now on.

        Returns them: the exchanges that the model has never accepted, or all that are not text yet if it has accepted
        each one before. Drops the marks of exchanges that the window no longer has.
        """
        plain, parts = self._plain_keys, _split(messages)[:-1]
        formed = frozenset(_exchange_key(part) for part in parts if any(map(_has_format, part))) - plain
        suspects = formed - self._answered or formed
        there = {exchange.messages[0].created for exchange in window.exchanges()}
        self._plain_keys = (plain | suspects) & there
        return suspects

    def unmark_plain(self, exchanges: frozenset[_ExchangeKey]) -> None:
        """Send these exchanges in their original form again, because the form was not the reason for the refusal."""
        self._plain_keys -= exchanges

    def on_answered(self, messages: tuple[Message, ...]) -> None:
        """Remember the exchanges of a request that was answered."""
        self._answered = frozenset(map(_exchange_key, _split(messages)[:-1]))


def _split(messages: Iterable[Message]) -> list[_ExchangeMessages]:
    """Return the messages grouped by exchange; the system message belongs to the first group."""
    parts: list[list[Message]] = [[]]
    for message in messages:
        if message.role is Role.USER and {each.role for each in parts[-1]} - {Role.SYSTEM}:
            parts.append([])
        parts[-1].append(message)
    return [*parts]


def _exchange_key(part: _ExchangeMessages) -> _ExchangeKey:
    return next((each.created for each in part if each.role is Role.USER), None)


def _has_format(message: Message) -> bool:
    return bool(message.tool_calls or message.attachments or message.native)


def _iter_plain_messages(part: _ExchangeMessages) -> Iterator[Message]:
    """Yield the messages of an exchange as text; calls, results and attachments are described in the user message."""
    calls = {call.id: call for message in part for call in message.tool_calls}
    answered = ((calls.get(each.tool_call_id or ""), each.content) for each in part if each.role is Role.TOOL)
    notes = [_format_call_note(call, result) for call, result in answered if call is not None]
    said = [each.content for each in part if each.role is Role.ASSISTANT and each.content]
    for message in part:
        if message.role is Role.USER:
            unseen = UNSEEN_NOTE if message.attachments else ""
            content = "\n\n".join(filter(None, (message.content, unseen, *notes)))
            yield Message.user(content, created=message.created)
        elif message.role is Role.SYSTEM:
            yield message
    if said:
        yield Message.assistant("\n".join(said))


def _format_call_note(call: ToolCall, result: str) -> str:
    arguments = json.dumps(dict(call.arguments), ensure_ascii=False, default=str)
    return f"[For this, {call.name} was called with {arguments[:_MAX_CHARS]}: {result[:_MAX_CHARS]}]"
