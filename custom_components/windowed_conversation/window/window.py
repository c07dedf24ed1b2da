"""The window on one conversation: the exchanges that are still sent, inside a token budget.

What may stand in an exchange is decided in `exchange`, what a message costs in `tokens`. No input or output, no locks.
"""

from collections.abc import Callable, Iterable
from itertools import chain
import time
from typing import Literal, Never

from .entry import entered, question
from .errors import ExchangeStillOpen, InvalidMessage, NoOpenExchange, UnknownExchange
from .exchange import Exchange, OpenExchange
from .history import History
from .messages import Message, Native, Role
from .policy import WindowPolicy
from .restore import Snapshot
from .stats import Evicted, WindowStats
from .summary import Passage, dropped, joined, summary_exchange, with_summary
from .tags import IMPORTANT, NO_TAGS, checked_tags, joined_tags, tag_filter
from .tokens import TokenCounter, message_tokens
from .tool_results import capped, stubbed


def _none_is_open() -> Never:
    raise NoOpenExchange("no exchange is open")


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
        self._system: Message | None = None
        self._history = History()
        self._last_number = 0
        self._open: OpenExchange | None = None
        # Everything that is sent, in order: rendering is one copy of it.
        self._sent: list[Message] = []
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
        return self._open is not None

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
            return tuple(self._sent)
        shows = tag_filter(tags, match, exclude)
        exchanges = [*self._history, *filter(None, [self._open])]
        shown = [*filter(lambda exchange: shows(exchange.tags), exchanges[:-1]), *exchanges[-1:]]
        return (*self._sent[: self._first], *chain.from_iterable(exchange.messages for exchange in shown))

    def stats(self) -> WindowStats:
        """Return the figures of this moment."""
        budget, tokens, opened = self._policy.history_tokens, self._tokens(), self._open
        return WindowStats(
            message_count=len(self._sent) - self._first,
            exchange_count=len(self._history) + (opened is not None),
            current_tokens=tokens,
            max_tokens=budget,
            utilization=100 * tokens / budget,
            prefix_tokens=(self._system and self._system.tokens) or 0,
            over_budget=tokens > budget,
            tag_distribution=self._history.tags.snapshot(opened.tags if opened else NO_TAGS),
            evicted_exchanges=self._evicted.exchanges,
            evicted_messages=self._evicted.messages,
            evicted_tokens=self._evicted.tokens,
            trims=self._evicted.trims,
            protected_tokens=self._protected_tokens(),
        )

    def exchanges(self) -> tuple[Exchange, ...]:
        """Return the closed exchanges, oldest first."""
        return tuple(self._history)

    def set_system(self, prompt: str) -> None:
        """Set the system prompt, or take it away when empty; the same text again changes nothing."""
        if prompt != (self._system.content if self._system else ""):
            self._put_system(self._entered(Message.system(prompt)) if prompt else None)
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
        puts back includes what was evicted for it. Raises `NoOpenExchange`.
        """
        if self._open is None:
            _none_is_open()
        self._put_limit(tokens)
        self._enforce()

    def open(self, text: str, tags: Iterable[str] = ()) -> None:
        """Begin the newest exchange with what the user said; raises `ExchangeStillOpen` and `InvalidTag`."""
        self._expect_none_open()
        entry = question(text, checked_tags(tags) if tags else NO_TAGS, self._counter, self._clock())
        self._begin(OpenExchange(entry))

    def add(self, message: Message) -> None:
        """Add to the open exchange what the assistant said, or the result of a call.

        Between a call and its result the window is no valid request. Raises `NoOpenExchange`, `InvalidTag`, and
        `InvalidMessage` (`UnknownToolCall`, `DuplicateToolCall`, `UnansweredToolCalls`) for one that cannot come next.
        """
        exchange = self._open or _none_is_open()
        exchange.check(message)
        entry = self._entered(message)
        exchange.append(entry)
        self._sent.append(entry)
        self._enforce()

    def tag(self, *tags: str) -> None:
        """Tag the open exchange; raises `NoOpenExchange` and `InvalidTag`."""
        exchange = self._open or _none_is_open()
        exchange.tags = joined_tags(exchange.tags, checked_tags(tags))

    def close(self) -> None:
        """Make the open exchange history, with stubs for its tool results if that is the policy.

        Raises `NoOpenExchange` and `UnansweredToolCalls`.
        """
        opened = self._open or _none_is_open()
        exchange = opened.closed(self._last_number + 1)
        if exchange.whole_results and self._policy.stubs_at_close:
            exchange = stubbed(exchange, self._counter)
            self._sent[len(self._sent) - len(exchange.messages) :] = exchange.messages
        self._history.append(exchange)
        self._last_number = exchange.number
        self._open = None
        self._put_limit(None)
        self._kept = None
        self._set_aside.clear()

    def abort(self) -> None:
        """Make the window what it was before `open`; raises `NoOpenExchange`.

        A policy that was set in between stays, and what it has no room for does not come back.
        """
        exchange = self._open or _none_is_open()
        self._open = None
        self._put_limit(None)
        self._kept = None
        del self._sent[len(self._sent) - len(exchange.messages) :]
        if self._set_aside:
            self._replace(self._set_aside.values())
            self._set_aside.clear()
        system, self._evicted, self._dropped = self._before
        self._put_system(system)
        self._enforce()

    def record(self, messages: Iterable[Message], tags: Iterable[str] = ()) -> None:
        """Take in an exchange that happened elsewhere, the user's message first: all of it or, on an error, nothing.

        Raises what `open`, `add` and `close` raise.
        """
        messages = tuple(messages)
        if not messages:
            raise InvalidMessage("an exchange has at least the user's message")
        self._expect_none_open()
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
        self._expect_none_open()
        exchange = self._history.get(number)
        if exchange is None:
            raise UnknownExchange(f"no closed exchange has the number {number!r}")
        self._replace([exchange.retagged(checked_tags(add), checked_tags(remove))])
        self._kept = None

    def summarize(self, passage: Passage, text: str, native: Native | None = None) -> Exchange:
        """Let a passage go for its summary, a protected exchange before the newest one; returns that exchange.

        `native` is what the model that made it reads in the place of the text. What is sent before the newest exchange
        changes only by what goes. Raises `ExchangeStillOpen`.
        """
        self._expect_none_open()
        summary = summary_exchange(text, self._policy, self._counter, self._clock(), native)
        newest = max(1, self._last_number)
        gone = [exchange for exchange in self._history if exchange.number in passage.numbers - {newest}]
        if gone:
            self._let_go(gone)
        self._replace(with_summary(self._history, newest, summary))
        self._last_number += 1
        self._dropped = self._dropped and self._dropped.without(passage.numbers)
        self._kept = None
        self._enforce()
        return summary

    def fail_to_summarize(self, passage: Passage) -> None:
        """Take note that no summary came of what was dropped: the second time it is given up."""
        self._dropped = self._dropped and self._dropped.after_failure(passage)

    @property
    def _first(self) -> int:
        """Where the exchanges begin in what is sent."""
        return 0 if self._system is None else 1

    def _protected_tokens(self) -> int:
        opened = self._open.tokens if self._open and IMPORTANT in self._open.tags else 0
        return self._history.protected_tokens + opened

    def _expect_none_open(self) -> None:
        if self._open is not None:
            raise ExchangeStillOpen("the last exchange is neither closed nor aborted")

    def _begin(self, exchange: OpenExchange) -> None:
        self._before = self._system, self._evicted, self._dropped
        self._open = exchange
        self._sent += exchange.messages
        self._enforce()

    def _entered(self, message: Message) -> Message:
        if message.role is Role.TOOL:
            content, tokens = capped(message, self._policy.result_cap_tokens, self._counter)
        else:
            content, tokens = message.content, message_tokens(message, self._counter)
        return entered(message, content, tokens, self._clock())

    def _put_system(self, system: Message | None) -> None:
        self._sent[: self._first] = () if system is None else (system,)
        self._system = system

    def _tokens(self) -> int:
        return self._history.tokens + (self._open.tokens if self._open else 0)

    def _put_limit(self, tokens: int | None) -> None:
        self._limit = tokens
        self._in_force = self._policy if tokens is None else self._policy.limited(tokens)

    def _enforce(self) -> None:
        opened = self._open.tokens if self._open else 0
        if self._history.tokens + opened > self._in_force.history_tokens:
            self._trim()

    def _trim(self) -> None:
        """Stub old tool results, then let exchanges go, down to the low-water mark; the newest exchange stays."""
        newest = 0 if self.is_open else self._last_number
        whole = self._stub_old_results(newest)
        gone = self._history.to_evict(self._tokens(), self._in_force, newest)
        if not gone and not whole:
            return
        if self._policy.summarize:
            passage = dropped(self._system, (*self._history, *whole), gone)
            self._dropped = joined(self._dropped, passage, self._policy.history_tokens)
        self._let_go(gone)
        if self.is_open:
            for exchange in (*whole, *gone):
                self._set_aside.setdefault(exchange.number, exchange)

    def _stub_old_results(self, newest: int) -> list[Exchange]:
        """Replace the tool results that the policy no longer keeps; returns the exchanges as they were."""
        if self._policy.tool_results == "keep":
            return []
        kept = (self._policy.max_tool_turns or 0) - (self._open is not None and self._open.has_results)
        whole = self._history.to_stub(max(0, kept), newest)
        if whole:
            self._replace([stubbed(exchange, self._counter) for exchange in whole])
        return whole

    def _let_go(self, gone: list[Exchange]) -> None:
        """Take exchanges out of the window: one trim, also when none of them go."""
        messages = sum(len(exchange.messages) for exchange in gone)
        self._evicted = self._evicted.and_a_trim(len(gone), messages, sum(exchange.tokens for exchange in gone))
        self._history.remove(gone)
        if not gone or self._history.is_older(gone):
            del self._sent[self._first : self._first + messages]
        else:
            self._render()

    def _replace(self, exchanges: Iterable[Exchange]) -> None:
        """Put closed exchanges where their numbers say, in the place of those that have the same."""
        self._history.put(exchanges)
        self._render()

    def _render(self) -> None:
        """Write anew what is sent of the closed exchanges."""
        opened = len(self._open.messages) if self._open else 0
        self._sent[self._first : len(self._sent) - opened] = self._history.messages()

    def snapshot(self) -> Snapshot:
        """Return what the window is between two turns: with an exchange open, what `abort` would go back to."""
        if self._kept is None:
            self._kept = self._at_rest()
        return self._kept

    def _at_rest(self) -> Snapshot:
        system, evicted, _ = self._before if self.is_open else (self._system, self._evicted, None)
        exchanges = {exchange.number: exchange for exchange in self._history} | self._set_aside
        at_rest = tuple(exchanges[number].numbered(0) for number in sorted(exchanges))
        return Snapshot(self._conversation_id, system, at_rest, evicted)

    def restore(self, snapshot: Snapshot) -> None:
        """Take over a snapshot, trimmed to the policy; the window has to be empty. Nothing is counted again."""
        self._put_system(snapshot.system)
        self._kept = None
        self._last_number = len(snapshot.exchanges)
        self._replace(exchange.numbered(number) for number, exchange in enumerate(snapshot.exchanges, start=1))
        self._evicted = snapshot.evicted
        self._enforce()
