"""Summaries: the passage that a summary is made of, and the protected exchange that replaces it."""

from collections.abc import Iterable
from dataclasses import replace
from itertools import chain
from typing import NamedTuple

from .exchange import Exchange
from .messages import BY_ROLE, EPHEMERAL, IMPORTANT, MAX_COUNT, SUMMARY, Message, Native, Role
from .policy import WindowPolicy
from .tokens import TokenCounter
from .tool_results import cut_content, message_entry

# The user's part of a summary: it has to say whose words the answer is about.
QUESTION = "[What was said before, in short?]"

_ANSWER = "You: "
_SPEAKERS = {Role.USER: "User: ", Role.ASSISTANT: _ANSWER}
# The rest is for the frames around messages, and for the rounding of single lines.
_FILLED = 0.9

_TAGS = frozenset({SUMMARY})
_PROTECTED = frozenset({IMPORTANT})
_OUTDATED = frozenset({EPHEMERAL})


class SummaryInput(NamedTuple):
    """A passage of a conversation that a summary is made of.

    `exchanges` are as they were last sent, oldest first, including those in between that stay, so that together with
    `system` they begin like the last request. `numbers` are those of the exchanges that the summary replaces. `earlier`
    is the text of the previous summary, and `failures` how often summarizing failed.
    """

    system: Message | None = None
    exchanges: tuple[Exchange, ...] = ()
    numbers: frozenset[int] = frozenset()
    earlier: str = ""
    failures: int = 0

    def shown(self, excluded_tags: frozenset[str]) -> tuple[Exchange, ...]:
        """Return the exchanges that were sent if those with any of these tags are excluded."""
        return tuple(exchange for exchange in self.exchanges if excluded_tags.isdisjoint(exchange.tags))

    def messages(self, excluded_tags: frozenset[str]) -> tuple[Message, ...]:
        """Return the messages as they were sent if exchanges with any of these tags are excluded."""
        shown = (exchange.messages for exchange in self.shown(excluded_tags))
        return (*filter(None, [self.system]), *chain.from_iterable(shown))

    def without(self, numbers: frozenset[int]) -> SummaryInput | None:
        """Return the passage that is left once these exchanges are summarized or dropped, or None if nothing is."""
        left = self.numbers - numbers
        exchanges = tuple(exchange for exchange in self.exchanges if exchange.number not in numbers)
        return SummaryInput(self.system, exchanges, left) if left else None

    def after_failure(self, failed: SummaryInput) -> SummaryInput | None:
        """Return the passage to try again after summarizing failed. Each exchange is tried at most twice."""
        return self.without(failed.numbers) if self.failures else self._replace(failures=1)


def join_summary_inputs(passage: SummaryInput | None, newer: SummaryInput | None, limit: int) -> SummaryInput | None:
    """Return two passages as one. Beyond this many tokens the oldest exchanges are dropped."""
    if passage is None or newer is None:
        return newer or passage
    by_number = {exchange.number: exchange for exchange in (*passage.exchanges, *newer.exchanges)}
    exchanges = [by_number[number] for number in sorted(by_number)]
    tokens = sum(exchange.tokens for exchange in exchanges)
    too_old = set[int]()
    for exchange in exchanges:
        if tokens > limit:
            tokens -= exchange.tokens
            too_old.add(exchange.number)
    return newer._replace(
        exchanges=tuple(exchange for exchange in exchanges if exchange.number not in too_old),
        numbers=(passage.numbers | newer.numbers) - too_old,
        earlier=newer.earlier or passage.earlier,
        failures=passage.failures,
    )


def is_summary(exchange: Exchange) -> bool:
    """Return whether an exchange is the current summary. A tag of the user's does not make it one."""
    return SUMMARY in exchange.messages[0].tags


def summary_text(exchanges: Iterable[Exchange]) -> str:
    """Return the text of the summary among these exchanges, or an empty text."""
    return next((exchange.messages[-1].content for exchange in exchanges if is_summary(exchange)), "")


def evicted_summary_input(
    system: Message | None, before: Iterable[Exchange], evicted: Iterable[Exchange]
) -> SummaryInput | None:
    """Return the passage that a trim evicted, or None if nothing in it needs a summary.

    Ephemeral exchanges need none: the user has said so, or a later summary stands for them. If exchanges in `before`
    have the same number, the last one counts.
    """
    lasting = [exchange for exchange in evicted if EPHEMERAL not in exchange.tags]
    if not lasting:
        return None
    numbers = frozenset(exchange.number for exchange in lasting)
    newest = max(numbers)
    by_number = {exchange.number: exchange for exchange in before if exchange.number <= newest}
    head = tuple(by_number[number] for number in sorted(by_number))
    return SummaryInput(system, head, numbers, summary_text(lasting))


def older_summary_input(
    system: Message | None, exchanges: tuple[Exchange, ...], keep: int, excluded_tags: frozenset[str]
) -> SummaryInput | None:
    """Return the passage before the newest `keep` exchanges, or None if nothing there may be evicted.

    Protected exchanges stay. So do those with a tag in `excluded_tags`, which the model does not see.
    """
    older = exchanges[: max(0, len(exchanges) - keep)]
    evicted = [
        exchange for exchange in older if IMPORTANT not in exchange.tags and excluded_tags.isdisjoint(exchange.tags)
    ]
    return evicted_summary_input(system, older, evicted)


def with_summary(exchanges: Iterable[Exchange], last: int, summary: Exchange) -> list[Exchange]:
    """Return the exchanges that change when a summary is inserted before the newest exchange, the number `last`.

    The previous summary is not removed, as that would change earlier messages. It is evicted at the next trim.
    """
    changed = [summary._replace(number=last)]
    for exchange in exchanges:
        after = exchange.with_tags(_OUTDATED, _TAGS | _PROTECTED) if is_summary(exchange) else exchange
        if exchange.number == last:
            after = after._replace(number=last + 1)
        if after is not exchange:
            changed.append(after)
    return changed


def plain_text(
    passage: SummaryInput, excluded_tags: frozenset[str], policy: WindowPolicy, counter: TokenCounter
) -> str:
    """Return the text of a passage and of the previous summary, one line for each message that fits.

    Other models get this if only one model can read a summary. The user's words come first, newest first, because
    answers can be had again. Very long messages are cut.
    """
    evicted = [exchange for exchange in passage.shown(excluded_tags) if exchange.number in passage.numbers]
    messages = [message for exchange in evicted for message in exchange.messages]
    longest, room = policy.summary_tokens, _FILLED * policy.summary_tokens - counter.count(QUESTION)
    lines = [*passage.earlier.splitlines(), *_lines(messages, longest)]
    places = set[int]()
    for place in sorted(range(len(lines)), key=lambda at: (lines[at].startswith(_ANSWER), -at)):
        room -= counter.count(f"{lines[place]}\n")
        if room < 0 and places:
            break
        places.add(place)
    return "\n".join(lines[place] for place in sorted(places))


def _lines(messages: Iterable[Message], longest: int) -> Iterable[str]:
    for message in messages:
        words = " ".join(message.content.split())
        if words and message.role in _SPEAKERS:
            yield f"{_SPEAKERS[message.role]}{words if len(words) <= longest else f'{words[:longest]}…'}"


def summary_exchange(
    text: str, policy: WindowPolicy, counter: TokenCounter, now: float, native: Native | None = None
) -> Exchange:
    """Return the exchange of a summary. If it is longer than the policy allows it is cut, with a line that says so.

    The model that made it reads `native` instead of the text. The more expensive of the two counts.
    """
    question = message_entry(Message.user(QUESTION, tags=_TAGS), MAX_COUNT, counter, now)
    content, tokens = cut_content(Message.assistant(text), policy.summary_tokens - (question.tokens or 0), counter)
    if native is not None:
        native = replace(native, tokens=max(0, native.tokens - tokens))
        tokens += native.tokens
    tags = _TAGS | BY_ROLE[Role.ASSISTANT]
    answer = Message.assistant(content, tags=tags, created=now, tokens=tokens, native=native)
    return Exchange((question, answer), question.tags | answer.tags | _PROTECTED, tokens + (question.tokens or 0))
