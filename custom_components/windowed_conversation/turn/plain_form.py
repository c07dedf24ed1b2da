"""Ended exchanges whose form a model refuses: it is sent their calls, results and attachments as text.

Servers refuse a call without its result, ids that they would not write, or an odd attachment, often without
saying so. A window keeps such exchanges as they are. Only the exchanges concerned are rewritten, and into the user's
words: a model that reads its own calls as prose stops calling tools.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
import json
from weakref import WeakKeyDictionary

from ..providers import UNSEEN
from ..window import Message, Role, ToolCall, Window

# In characters: a result that the window keeps may be as long as the window.
_LONGEST_RESULT = 300

# An exchange is known by the time at which its question was added, which no shortening changes.
type _Key = float | None
type _Part = Sequence[Message]


class PlainForm:
    """The exchanges that one model is sent as text, by window. Working memory: it ends with the window."""

    def __init__(self) -> None:
        self._plain: WeakKeyDictionary[Window, frozenset[_Key]] = WeakKeyDictionary()
        # The ended exchanges that were served in their own form, or as text.
        self._served: WeakKeyDictionary[Window, frozenset[_Key]] = WeakKeyDictionary()

    def apply(self, window: Window, messages: tuple[Message, ...]) -> tuple[Message, ...]:
        """Return the messages of a request, with the exchanges concerned as text."""
        plain = self._plain.get(window)
        if not plain:
            return messages
        *ended, newest = _parts(messages)
        texts = (_as_text(part) if _key(part) in plain else part for part in ended)
        return (*chain.from_iterable(texts), *newest)

    def suspects(self, window: Window, messages: tuple[Message, ...]) -> frozenset[_Key]:
        """Return the ended exchanges whose form may be why a request was refused, and that are not text yet.

        These are the ones that were never served, or all of them if each was.
        """
        plain, served = self._plain.get(window, frozenset()), self._served.get(window, frozenset())
        formed = frozenset(_key(part) for part in _parts(messages)[:-1] if any(map(_has_form, part))) - plain
        return formed - served or formed

    def write(self, window: Window, exchanges: frozenset[_Key]) -> None:
        """Send these exchanges as text from now on, besides those that the window still has."""
        there = {exchange.messages[0].created for exchange in window.exchanges()}
        self._plain[window] = (self._plain.get(window, frozenset()) | exchanges) & there

    def unwrite(self, window: Window, exchanges: frozenset[_Key]) -> None:
        """Send these exchanges in their own form again: the form was not why they were refused."""
        self._plain[window] = self._plain.get(window, frozenset()) - exchanges

    def on_served(self, window: Window, messages: tuple[Message, ...]) -> None:
        """Take in the messages of a request that was served."""
        self._served[window] = frozenset(map(_key, _parts(messages)[:-1]))


def _parts(messages: Iterable[Message]) -> list[_Part]:
    """Return the messages by exchange; the system message is part of the first one."""
    parts: list[list[Message]] = [[]]
    for message in messages:
        if message.role is Role.USER and any(each.role is not Role.SYSTEM for each in parts[-1]):
            parts.append([])
        parts[-1].append(message)
    return [*parts]


def _key(part: _Part) -> _Key:
    return next((each.created for each in part if each.role is Role.USER), None)


def _has_form(message: Message) -> bool:
    return bool(message.tool_calls or message.attachments or message.native)


def _as_text(part: _Part) -> Iterator[Message]:
    """Yield the messages of an exchange with its calls, results and attachments in the user's words."""
    calls = {call.id: call for message in part for call in message.tool_calls}
    answered = ((calls.get(each.tool_call_id or ""), each.content) for each in part if each.role is Role.TOOL)
    notes = [_note(call, result) for call, result in answered if call is not None]
    said = [each.content for each in part if each.role is Role.ASSISTANT and each.content]
    for message in part:
        if message.role is Role.USER:
            unseen = UNSEEN if message.attachments else ""
            content = "\n\n".join(filter(None, (message.content, unseen, *notes)))
            yield Message.user(content, created=message.created)
        elif message.role is Role.SYSTEM:
            yield message
    if said:
        yield Message.assistant("\n".join(said))


def _note(call: ToolCall, result: str) -> str:
    arguments = json.dumps(dict(call.arguments), ensure_ascii=False, default=str)
    return f"[For this, {call.name} was called with {arguments[:_LONGEST_RESULT]}: {result[:_LONGEST_RESULT]}]"
