"""Putting a summary into a window, and dropping exchanges for which no summary could be made."""

from .contents import Contents
from .exchange import Exchange
from .summary import Passage, with_summary


def put_summary(contents: Contents, passage: Passage, summary: Exchange) -> None:
    """Evict a passage and insert its summary before the newest exchange, which stays. No exchange may be open."""
    newest = max(1, contents.last_number)
    replaced = [exchange for exchange in contents.history if exchange.number in passage.numbers - {newest}]
    if replaced:
        contents.evict(replaced)
    contents.replace(with_summary(contents.history, newest, summary))
    contents.last_number += 1
    waiting = contents.state.unsummarized
    contents.hold(waiting and waiting.without(passage.numbers))


def fail_summary(contents: Contents, passage: Passage) -> None:
    """Record that no summary was made of a passage. After the second time the window no longer holds it."""
    waiting = contents.state.unsummarized
    contents.hold(waiting and waiting.after_failure(passage))
