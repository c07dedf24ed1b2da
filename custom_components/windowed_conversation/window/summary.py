"""Summaries: the passage to summarize, and the protected exchange that replaces it."""

from collections.abc import Iterable
from dataclasses import replace
from itertools import chain
from typing import NamedTuple

from .exchange import Exchange
from .messages import EPHEMERAL, IMPORTANT, MAX_TOKENS, ROLE_TAGS, SUMMARY, Message, NativeData, Role
from .policy import WindowPolicy
from .tokens import TokenCounter
from .tool_results import cut_content, prepare_message

# The user message of a summary exchange. It has to make clear what the answer, which is the summary, is about.
QUESTION = "[What was said before, in short?]"

_ANSWER_LABEL = "You: "
_LABEL_BY_ROLE = {Role.USER: "User: ", Role.ASSISTANT: _ANSWER_LABEL}
# The share of the room that may be filled. The rest is for frames around messages and for rounding per line.
_FILL_SHARE = 0.9

_SUMMARY_TAGS = frozenset({SUMMARY})
_PROTECTED = frozenset({IMPORTANT})
_OUTDATED = frozenset({EPHEMERAL})


class SummaryInput(NamedTuple):
    """A passage of a conversation that is to be summarized.

    The system message and the exchanges together are the beginning of the last request.
    """

    system: Message | None = None
    # In the form in which they were last sent, oldest first, including those in between that are not evicted.
    exchanges: tuple[Exchange, ...] = ()
    # The numbers of the exchanges that the summary replaces.
    numbers: frozenset[int] = frozenset()
    # The text of the previous summary.
    earlier_summary: str = ""
    # The number of times that summarizing has failed.
    failed_attempts: int = 0

    @property
    def messages(self) -> tuple[Message, ...]:
        """The system message and those of the exchanges, oldest first."""
        return (*filter(None, [self.system]), *chain.from_iterable(each.messages for each in self.exchanges))

    def without_exchanges(self, numbers: frozenset[int]) -> SummaryInput | None:
        """Return the passage without exchanges that were summarized or dropped, or None if nothing remains."""
        left = self.numbers - numbers
        exchanges = tuple(exchange for exchange in self.exchanges if exchange.number not in numbers)
        return SummaryInput(self.system, exchanges, left) if left else None


def join_summary_inputs(passage: SummaryInput | None, newer: SummaryInput | None, limit: int) -> SummaryInput | None:
    """Return two passages as one. If they exceed `limit` tokens together, the oldest exchanges are dropped."""
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
        earlier_summary=newer.earlier_summary or passage.earlier_summary,
        failed_attempts=passage.failed_attempts,
    )


def is_summary(exchange: Exchange) -> bool:
    """Return whether an exchange is the current summary. A tag that the user has set does not make it one."""
    return SUMMARY in exchange.messages[0].tags


def find_summary_text(exchanges: Iterable[Exchange]) -> str:
    """Return the text of the summary among these exchanges, or an empty text if there is none."""
    return next((exchange.messages[-1].content for exchange in exchanges if is_summary(exchange)), "")


def build_evicted_summary_input(
    system: Message | None, before: Iterable[Exchange], evicted: Iterable[Exchange]
) -> SummaryInput | None:
    """Return the passage that a trim evicted, or None if no exchange in it needs a summary.

    Ephemeral exchanges need none, because the user marked them as such or a later summary covers them. If several
    exchanges in `before` have the same number, the last one is used.
    """
    lasting = [exchange for exchange in evicted if EPHEMERAL not in exchange.tags]
    if not lasting:
        return None
    numbers = frozenset(exchange.number for exchange in lasting)
    newest = max(numbers)
    by_number = {exchange.number: exchange for exchange in before if exchange.number <= newest}
    head = tuple(by_number[number] for number in sorted(by_number))
    return SummaryInput(system, head, numbers, find_summary_text(lasting))


def build_older_summary_input(
    system: Message | None, exchanges: tuple[Exchange, ...], keep: int
) -> SummaryInput | None:
    """Return the passage before the newest `keep` exchanges, or None if none of them needs a summary.

    Ephemeral exchanges are evicted with the passage. Protected exchanges are kept.
    """
    older = exchanges[: max(0, len(exchanges) - keep)]
    evicted = [exchange for exchange in older if IMPORTANT not in exchange.tags]
    passage = build_evicted_summary_input(system, older, evicted)
    return passage and passage._replace(numbers=frozenset(exchange.number for exchange in evicted))


def count_replaced_tokens(passage: SummaryInput, exchanges: Iterable[Exchange]) -> int:
    """Return the tokens that a summary of this passage replaces, including the current summary in `exchanges`."""
    replaced = [exchange for exchange in passage.exchanges if exchange.number in passage.numbers]
    earlier = [exchange for exchange in exchanges if is_summary(exchange) and exchange.number not in passage.numbers]
    return sum(exchange.tokens for exchange in (*replaced, *earlier))


def build_summary_changes(exchanges: Iterable[Exchange], last: int, summary: Exchange) -> list[Exchange]:
    """Return the exchanges that change when a summary is inserted before the exchange with the number `last`.

    `last` is the newest exchange. A previous summary that is still there is marked for eviction by the next trim and
    not removed now, because that would change earlier messages.
    """
    changed = [summary._replace(number=last)]
    for exchange in exchanges:
        after = exchange.with_tags(_OUTDATED, _SUMMARY_TAGS | _PROTECTED) if is_summary(exchange) else exchange
        if exchange.number == last:
            after = after._replace(number=last + 1)
        if after is not exchange:
            changed.append(after)
    return changed


def format_plain_summary(passage: SummaryInput, policy: WindowPolicy, counter: TokenCounter) -> str:
    """Return the text of a passage and the previous summary, with one line for each message that fits.

    Other models get this text if only one model can read the summary itself. User messages take precedence over
    answers, and newer ones over older ones, because a model can answer again. Very long messages are cut, and ephemeral
    exchanges are excluded.
    """
    replaced = [exchange for exchange in passage.exchanges if exchange.number in passage.numbers]
    messages = [message for exchange in replaced if EPHEMERAL not in exchange.tags for message in exchange.messages]
    longest, room = policy.summary_tokens, _FILL_SHARE * policy.summary_tokens - counter.count(QUESTION)
    lines = [*passage.earlier_summary.splitlines(), *_iter_message_lines(messages, longest)]
    places = set[int]()
    for place in sorted(range(len(lines)), key=lambda at: (lines[at].startswith(_ANSWER_LABEL), -at)):
        room -= counter.count(f"{lines[place]}\n")
        if room < 0 and places:
            break
        places.add(place)
    return "\n".join(lines[place] for place in sorted(places))


def _iter_message_lines(messages: Iterable[Message], longest: int) -> Iterable[str]:
    for message in messages:
        words = " ".join(message.content.split())
        if words and message.role in _LABEL_BY_ROLE:
            yield f"{_LABEL_BY_ROLE[message.role]}{words if len(words) <= longest else f'{words[:longest]}…'}"


def build_summary_exchange(
    text: str, policy: WindowPolicy, counter: TokenCounter, now: float, native: NativeData | None = None
) -> Exchange:
    """Return the exchange of a summary. A text that exceeds the policy's limit is cut and marked as cut.

    The model that wrote the summary reads `native` instead of the text. The exchange counts the larger of the two
    sizes.
    """
    question = prepare_message(Message.user(QUESTION, tags=_SUMMARY_TAGS), MAX_TOKENS, counter, now)
    content, tokens = cut_content(Message.assistant(text), policy.summary_tokens - (question.tokens or 0), counter)
    if native is not None:
        native = replace(native, tokens=max(0, native.tokens - tokens))
        tokens += native.tokens
    tags = _SUMMARY_TAGS | ROLE_TAGS[Role.ASSISTANT]
    answer = Message.assistant(content, tags=tags, created=now, tokens=tokens, native=native)
    return Exchange((question, answer), question.tags | answer.tags | _PROTECTED, tokens + (question.tokens or 0))
