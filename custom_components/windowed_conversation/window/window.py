"""The window on one conversation: the exchanges that are still sent, inside a token budget.

What may stand in an exchange is decided in `exchange`, what a message costs in `tokens`. No input or output, no locks.
"""

from collections.abc import Callable, Iterable
import time
from typing import Literal, Never

from .contents import Contents
from .entry import entered, question
from .errors import ExchangeStillOpen, InvalidMessage, NoOpenExchange, UnknownExchange
from .exchange import Exchange, OpenExchange
from .incomplete import ending
from .messages import Message, Native, Role, ToolCall
from .policy import WindowPolicy
from .restore import Snapshot
from .stats import Evicted, WindowStats, figures
from .summary import Passage, dropped, joined, summary_exchange, with_summary
from .tags import INCOMPLETE, NO_TAGS, checked_tags, joined_tags, tag_filter
from .tokens import TokenCounter, message_tokens
from .tool_results import capped, stubbed
from .trim import cut_to_fit, make_room

_INCOMPLETE = frozenset({INCOMPLETE})


def _none_is_open() -> Never:
    raise NoOpenExchange("no exchange is open")


def _one_is_open() -> Never:
    raise ExchangeStillOpen("the last exchange is neither closed nor aborted")


class Window:
    """The exchanges of one conversation that are still sent.

    Every method that raises `WindowError` has left the window unchanged. Each message is counted once, on entry;
    appending and trimming are constant per message, and `messages` copies one list. So does a trim that leaves gaps,
    because it lets ephemeral exchanges go or keeps protected ones. Not for several threads.
    """

    def __init__(
        self,
        conversation_id: str,
        policy: WindowPolicy,
        counter: TokenCounter,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Begin empty; `clock` returns seconds since the epoch, for the messages' `created`."""
        self._conversation_id = conversation_id
        self._policy = policy
        # The policy, with the turn's own limit while that is the smaller one.
        self._in_force = policy
        self._limit: int | None = None
        self._counter = counter
        self._clock = clock
        self._contents = Contents()
        self._last_number = 0
        self._evicted = Evicted()
        self._dropped: Passage | None = None
        # What `abort` goes back to: the prompt, the sums and what was dropped at `open`, and the exchanges that trims
        # have changed since.
        self._before: tuple[Message | None, Evicted, Passage | None] = None, self._evicted, None
        self._set_aside: dict[int, Exchange] = {}
        # The snapshot, until something changes: it is asked for after every turn, of every window.
        self._kept: Snapshot | None = None

    @property
    def conversation_id(self) -> str:
        """The id that the window was made with."""
        return self._conversation_id

    @property
    def policy(self) -> WindowPolicy:
        """The user's policy, which only `set_policy` changes."""
        return self._policy

    @property
    def is_open(self) -> bool:
        """Whether an exchange is open."""
        return self._contents.opened is not None

    @property
    def has_tool_calls(self) -> bool:
        """Whether the open exchange holds a tool call: an abort would forget what it did."""
        opened = self._contents.opened
        return opened is not None and opened.has_calls

    @property
    def dropped(self) -> Passage | None:
        """What trims have let go that no summary stands for, under a policy that summarizes."""
        return self._dropped if self._policy.summarize else None

    def messages(
        self, *, tags: Iterable[str] = (), match: Literal["any", "all"] = "any", exclude: Iterable[str] = ()
    ) -> tuple[Message, ...]:
        """Return what to send: the system message, then whole exchanges, oldest first, the open one last.

        With `tags`, of the older exchanges only those that have any of them, or all; never those that have a tag in
        `exclude`. The system message and the newest exchange are always there. Raises `InvalidTag`, and `ValueError`
        for another `match`.
        """
        if not tags and not exclude and match == "any":
            return tuple(self._contents.sent)
        return self._contents.view(tag_filter(tags, match, exclude))

    def stats(self) -> WindowStats:
        """Return the figures of this moment."""
        return figures(self._contents, self._policy, self._in_force, self._evicted)

    def exchanges(self) -> tuple[Exchange, ...]:
        """Return the closed exchanges, oldest first."""
        return tuple(self._contents.history)

    def set_system(self, prompt: str) -> None:
        """Set the system prompt, or take it away when empty; the same text again changes nothing."""
        system = self._contents.system
        if prompt != (system.content if system else ""):
            self._contents.put_system(self._entered(Message.system(prompt)) if prompt else None)
            self._kept = None

    def set_policy(self, policy: WindowPolicy) -> None:
        """Change the policy and trim to it at once; a limit of the turn stays beside it."""
        self._policy = policy
        self._kept = None
        self._put_limit(self._limit)
        self._enforce()

    def limit(self, tokens: int | None) -> None:
        """Limit all exchanges to so many tokens for this turn, and trim to that at once; None is no limit.

        The smaller of this and the policy's budget is in force until the exchange is closed or aborted; what an abort
        puts back includes what was evicted for it. It is for before each request: what is still too large then has the
        results of its newest tool round cut to what is left, none of them below 100 tokens. Raises `NoOpenExchange`.
        """
        if not self.is_open:
            _none_is_open()
        self._put_limit(tokens)
        self._enforce()
        if cut_to_fit(self._contents, self._in_force, self._counter):
            self._evicted = self._evicted.and_a_trim(0, 0, 0)

    def open(self, text: str, tags: Iterable[str] = ()) -> None:
        """Begin the newest exchange with what the user said; raises `ExchangeStillOpen` and `InvalidTag`."""
        if self._contents.opened is not None:
            _one_is_open()
        entry = question(text, checked_tags(tags) if tags else NO_TAGS, self._counter, self._clock())
        self._begin(OpenExchange(entry))

    def add(self, message: Message) -> None:
        """Add to the open exchange what the assistant said, or the result of a call.

        Between a call and its result the window is no valid request. Raises `NoOpenExchange`, `InvalidTag`, and
        `InvalidMessage` (`UnknownToolCall`, `DuplicateToolCall`, `UnansweredToolCalls`) for one that cannot come next.
        """
        contents = self._contents
        exchange = contents.opened or _none_is_open()
        exchange.check(message)
        entry = self._entered(message)
        exchange.append(entry)
        contents.sent.append(entry)
        if contents.history.tokens + exchange.tokens > self._in_force.history_tokens:
            self._trim()

    def tag(self, *tags: str) -> None:
        """Tag the open exchange; raises `NoOpenExchange` and `InvalidTag`."""
        exchange = self._contents.opened or _none_is_open()
        exchange.tags = joined_tags(exchange.tags, checked_tags(tags))

    def close(self) -> None:
        """Make the open exchange history, with stubs for its tool results if that is the policy.

        Raises `NoOpenExchange` and `UnansweredToolCalls`.
        """
        contents = self._contents
        opened = contents.opened or _none_is_open()
        exchange = opened.closed(self._last_number + 1)
        if exchange.whole_results and self._policy.stubs_at_close:
            exchange = stubbed(exchange, self._counter, opened.uncut)
            contents.rewrite(exchange.messages)
        contents.history.append(exchange)
        contents.opened = None
        self._last_number = exchange.number
        if self._limit is not None:
            self._put_limit(None)
        self._kept = None
        if self._set_aside:
            self._set_aside.clear()

    def close_incomplete(self, said: str = "", calls: Iterable[ToolCall] = ()) -> None:
        """Close the open exchange as far as it came, tagged `incomplete`: its turn ended after a tool had run.

        `said` and `calls` are of an answer that was under way and never added. Each call without a result gets one that
        says that it was interrupted; calls that could not be added are excluded. Raises `NoOpenExchange`.
        """
        exchange = self._contents.opened or _none_is_open()
        for message in tuple(ending(exchange, said, calls)):
            self.add(message)
        exchange.tags = joined_tags(exchange.tags, _INCOMPLETE)
        self.close()

    def abort(self) -> None:
        """Make the window what it was before `open`; raises `NoOpenExchange`.

        A policy that was set in between stays, and what it has no room for does not come back.
        """
        exchange = self._contents.opened or _none_is_open()
        self._contents.discard(exchange)
        self._put_limit(None)
        self._kept = None
        if self._set_aside:
            self._contents.replace(self._set_aside.values())
            self._set_aside.clear()
        system, self._evicted, self._dropped = self._before
        self._contents.put_system(system)
        self._enforce()

    def record(self, messages: Iterable[Message], tags: Iterable[str] = ()) -> None:
        """Take in an exchange that happened elsewhere, the user's message first: all of it or, on an error, nothing.

        Raises what `open`, `add` and `close` raise.
        """
        messages = tuple(messages)
        if not messages:
            raise InvalidMessage("an exchange has at least the user's message")
        if self._contents.opened is not None:
            _one_is_open()
        exchange = OpenExchange(self._entered(messages[0]))
        exchange.tags = joined_tags(exchange.tags, checked_tags(tags))
        self._begin(exchange)
        try:
            for message in messages[1:]:
                self.add(message)
            self.close()
        except BaseException:
            self.abort()
            raise

    def tag_exchange(self, number: int, *, add: Iterable[str] = (), remove: Iterable[str] = ()) -> None:
        """Change the tags of a closed exchange; nothing goes before the next trim.

        Raises `UnknownExchange`, `ExchangeStillOpen` while one is open, and `InvalidTag`, also for automatic tags that
        are to be removed.
        """
        if self._contents.opened is not None:
            _one_is_open()
        exchange = self._contents.history.get(number)
        if exchange is None:
            raise UnknownExchange(f"no closed exchange has the number {number!r}")
        self._contents.replace([exchange.retagged(checked_tags(add), checked_tags(remove))])
        self._kept = None

    def summarize(self, passage: Passage, text: str, native: Native | None = None) -> Exchange:
        """Let a passage go for its summary, a protected exchange before the newest one; returns that exchange.

        `native` is what the model that made it reads in the place of the text. What is sent before the newest exchange
        changes only by what goes. Raises `ExchangeStillOpen`.
        """
        if self._contents.opened is not None:
            _one_is_open()
        summary = summary_exchange(text, self._policy, self._counter, self._clock(), native)
        newest = max(1, self._last_number)
        gone = [exchange for exchange in self._contents.history if exchange.number in passage.numbers - {newest}]
        if gone:
            self._let_go(gone)
        self._contents.replace(with_summary(self._contents.history, newest, summary))
        self._last_number += 1
        self._dropped = self._dropped and self._dropped.without(passage.numbers)
        self._kept = None
        self._enforce()
        return summary

    def fail_to_summarize(self, passage: Passage) -> None:
        """Take note that no summary came of what was dropped: the second time it is given up."""
        self._dropped = self._dropped and self._dropped.after_failure(passage)

    def _begin(self, exchange: OpenExchange) -> None:
        contents = self._contents
        self._before = contents.system, self._evicted, self._dropped
        contents.opened = exchange
        contents.sent += exchange.messages
        if contents.history.tokens + exchange.tokens > self._in_force.history_tokens:
            self._trim()

    def _entered(self, message: Message) -> Message:
        if message.role is Role.TOOL:
            content, tokens = capped(message, self._policy.result_cap_tokens, self._counter)
        else:
            content, tokens = message.content, message_tokens(message, self._counter)
        return entered(message, content, tokens, self._clock())

    def _put_limit(self, tokens: int | None) -> None:
        self._limit = tokens
        self._in_force = self._policy.limited(tokens)

    def _enforce(self) -> None:
        if self._contents.tokens > self._in_force.history_tokens:
            self._trim()

    def _trim(self) -> None:
        """Trim to the policy in force; the newest exchange stays."""
        trim = make_room(self._contents, self._in_force, 0 if self.is_open else self._last_number, self._counter)
        if trim is None:
            return
        if self._policy.summarize:
            passage = dropped(self._contents.system, (*self._contents.history, *trim.whole), trim.gone)
            self._dropped = joined(self._dropped, passage, self._policy.history_tokens)
        self._let_go(trim.gone)
        if self.is_open:
            for exchange in (*trim.whole, *trim.gone):
                self._set_aside.setdefault(exchange.number, exchange)

    def _let_go(self, gone: list[Exchange]) -> None:
        """Take exchanges out of the window: one trim, also when none of them go."""
        messages = sum(len(exchange.messages) for exchange in gone)
        self._evicted = self._evicted.and_a_trim(len(gone), messages, sum(exchange.tokens for exchange in gone))
        self._contents.remove(gone)

    def snapshot(self) -> Snapshot:
        """Return what the window is between two turns: with an exchange open, what `abort` would go back to."""
        if self._kept is None:
            self._kept = self._at_rest()
        return self._kept

    def _at_rest(self) -> Snapshot:
        system, evicted, _ = self._before if self.is_open else (self._contents.system, self._evicted, None)
        exchanges = {exchange.number: exchange for exchange in self._contents.history} | self._set_aside
        at_rest = tuple(exchanges[number].numbered(0) for number in sorted(exchanges))
        return Snapshot(self._conversation_id, system, at_rest, evicted)

    def restore(self, snapshot: Snapshot) -> None:
        """Take over a snapshot, trimmed to the policy; the window has to be empty. Nothing is counted again."""
        self._contents.put_system(snapshot.system)
        self._kept = None
        self._last_number = len(snapshot.exchanges)
        self._contents.replace(exchange.numbered(number) for number, exchange in enumerate(snapshot.exchanges, start=1))
        self._evicted = snapshot.evicted
        self._enforce()
