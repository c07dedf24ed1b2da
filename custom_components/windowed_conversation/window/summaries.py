"""The summaries of one window: putting one before the newest exchange, or giving up what waits for one."""

from .contents import Contents
from .exchange import Exchange
from .summary import Passage, with_summary


def put_summary(contents: Contents, passage: Passage, summary: Exchange) -> None:
    """Evict a passage for its summary, which comes before the newest exchange; that one stays. None may be open."""
    newest = max(1, contents.last_number)
    gone = [exchange for exchange in contents.history if exchange.number in passage.numbers - {newest}]
    if gone:
        contents.evict(gone)
    contents.replace(with_summary(contents.history, newest, summary))
    contents.last_number += 1
    waiting = contents.state.dropped
    contents.hold(waiting and waiting.without(passage.numbers))


def give_up_summary(contents: Contents, passage: Passage) -> None:
    """Take note that no summary came of a passage: the second time it waits no longer."""
    waiting = contents.state.dropped
    contents.hold(waiting and waiting.after_failure(passage))
