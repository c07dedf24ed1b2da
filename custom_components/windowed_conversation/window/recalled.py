"""Exchanges without the lines that memory has added."""

from .entry import rewritten
from .exchange import Exchange
from .tokens import TokenCounter, message_tokens


def without_recalled(exchange: Exchange, counter: TokenCounter) -> Exchange:
    """Return an exchange without the lines that memory added to the user's message. Their sources stay recorded."""
    question = exchange.messages[0]
    recalled = question.remembered
    if recalled is None:
        return exchange
    content = question.content[: recalled.start] + question.content[recalled.end :]
    shorter = rewritten(question, content, 0, recalled._replace(end=recalled.start, tokens=0), question.told)
    tokens = message_tokens(shorter, counter)
    shorter = rewritten(shorter, content, tokens, shorter.remembered, question.told)
    return exchange._replace(
        messages=(shorter, *exchange.messages[1:]), tokens=exchange.tokens - (question.tokens or 0) + tokens
    )
