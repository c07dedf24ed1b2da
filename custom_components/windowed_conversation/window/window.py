"""The window of one conversation: the exchanges that are still sent, within a token budget. Performs no I/O."""

from collections.abc import Callable, Iterable, Mapping
from itertools import chain
import time
from types import MappingProxyType
from typing import Literal, NamedTuple, Never

from .contents import Contents, cut_results_to_fit, trim
from .errors import ExchangeStillOpen, InvalidMessage, NoOpenExchange, UnknownExchange
from .exchange import Exchange, OpenExchange, Snapshot
from .messages import (
    IMPORTANT,
    INCOMPLETE_TAG,
    INPUT_TAGS,
    MAX_TOKENS,
    NO_TAGS,
    Message,
    NativeData,
    Role,
    ToolCall,
    check_tags,
    join_tags,
    make_tags,
    to_message,
)
from .policy import WindowPolicy
from .summary import SummaryInput, build_summary_exchange
from .tokens import MESSAGE_FRAME, TokenCounter
from .tool_results import iter_stubs, prepare_message

_INCOMPLETE_TAGS = frozenset({INCOMPLETE_TAG})


def _raise_not_open() -> Never:
    raise NoOpenExchange("no exchange is open")


class WindowStats(NamedTuple):
    """The sizes and counts of a window at one moment.

    The counts of messages, exchanges and current tokens include an open exchange, but not the system prompt.
    """

    message_count: int
    exchange_count: int
    current_tokens: int
    # The user's history budget.
    max_tokens: int
    # The used part of the history budget in percent, at most 100.
    utilization: float
    # The size of the system prompt.
    prefix_tokens: int
    # Whether the exchanges that have to stay exceed the budget or the limit of the current turn.
    over_budget: bool
    # The number of exchanges for each tag.
    tag_distribution: Mapping[str, int]
    evicted_exchanges: int
    evicted_messages: int
    evicted_tokens: int
    trims: int
    # The part of `current_tokens` in exchanges with the tag "important".
    protected_tokens: int


class Window:
    """The exchanges of one conversation that are still sent.

    A method that raises `WindowError` leaves the window unchanged. Each message is counted once, on entry. Appending
    and trimming take constant time per message. `messages` copies one list; so does a trim that leaves gaps because it
    evicts ephemeral exchanges or keeps protected ones. Not thread-safe.
    """

    def __init__(
        self,
        conversation_id: str,
        policy: WindowPolicy,
        counter: TokenCounter,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Create an empty window. `clock` returns seconds since the epoch, used for `Message.created`."""
        self.conversation_id = conversation_id
        # The user's policy. Only `set_policy` changes it.
        self.policy = policy
        # The policy, or a copy with a smaller budget if the turn's limit is below the policy's.
        self._effective_policy = policy
        self._turn_limit_tokens: int | None = None
        self._counter = counter
        self._clock = clock
        self._contents = Contents()
        # Exchanges that took place while the open one was being written, and that follow it.
        self._following: list[OpenExchange] = []
        self._has_new_following = False

    @property
    def is_open(self) -> bool:
        """Whether an exchange is open."""
        return self._contents.open_exchange is not None

    @property
    def has_tool_calls(self) -> bool:
        """Whether the open exchange has a tool call, which an abort would discard."""
        opened = self._contents.open_exchange
        return opened is not None and bool(opened.call_ids)

    @property
    def open_tokens(self) -> int:
        """The tokens of the open exchange, 0 if none is open."""
        opened = self._contents.open_exchange
        return 0 if opened is None else opened.tokens

    @property
    def pending_summary(self) -> SummaryInput | None:
        """The evicted exchanges that wait for a summary, or None. Always None if the policy does not summarize."""
        return self._contents.state.pending_summary if self.policy.summarize else None

    def messages(
        self, *, tags: Iterable[str] = (), match: Literal["any", "all"] = "any", exclude: Iterable[str] = ()
    ) -> tuple[Message, ...]:
        """Return the messages to send: the system message, then whole exchanges, oldest first, the open one last.

        If `tags` is given, closed exchanges are included only if they have any or all of these tags, depending on
        `match`. Closed exchanges with a tag in `exclude` are excluded. The system message and the open exchange are
        always included. Raises `InvalidTag`, and `ValueError` for an invalid `match`.
        """
        if not tags and not exclude and match == "any":
            return tuple(self._contents.messages)
        if match not in {"any", "all"}:
            raise ValueError(f"match must be 'any' or 'all', not {match!r}")
        contents, wanted, unwanted = self._contents, check_tags(tags), check_tags(exclude)
        shown = chain.from_iterable(
            each.messages
            for each in contents.history
            if (wanted <= each.tags if match == "all" or not wanted else wanted & each.tags)
            and not unwanted & each.tags
        )
        opened = contents.open_exchange.messages if contents.open_exchange else ()
        return (*contents.messages[: contents.history_start], *shown, *opened)

    def stats(self) -> WindowStats:
        """Return the current sizes and counts of the window."""
        contents, history, opened = self._contents, self._contents.history, self._contents.open_exchange
        system, evicted, _ = contents.state
        open_tags, open_tokens = (opened.tags, opened.tokens) if opened else (NO_TAGS, 0)
        budget, tokens = self.policy.history_tokens, history.tokens + open_tokens
        protected_tokens = open_tokens if IMPORTANT in open_tags else 0
        tag_counts = dict.fromkeys(open_tags, 1)
        for tags, exchange_count in history.exchange_count_by_tags.items():
            for tag in tags:
                tag_counts[tag] = tag_counts.get(tag, 0) + exchange_count
        return WindowStats(
            message_count=len(contents.messages) - contents.history_start,
            exchange_count=sum(history.exchange_count_by_tags.values()) + (opened is not None),
            current_tokens=tokens,
            max_tokens=budget,
            utilization=min(100.0, 100 * tokens / budget),
            prefix_tokens=(system and system.tokens) or 0,
            over_budget=tokens > self._effective_policy.history_tokens,
            tag_distribution=MappingProxyType(tag_counts),
            evicted_exchanges=evicted.exchanges,
            evicted_messages=evicted.messages,
            evicted_tokens=evicted.tokens,
            trims=evicted.trims,
            protected_tokens=protected_tokens + sum([exchange.tokens for exchange in history.protected.values()]),
        )

    def exchanges(self) -> tuple[Exchange, ...]:
        """Return the closed exchanges, oldest first."""
        return tuple(self._contents.history)

    def find_next_evictions(self) -> tuple[int, ...]:
        """Return the numbers of the exchanges that the next trim evicts, if a message barely exceeds the budget."""
        history, policy = self._contents.history, self._effective_policy
        tokens = max(self._contents.tokens, policy.history_tokens + 1)
        return tuple(exchange.number for exchange in history.select_exchanges_to_evict(tokens, policy, 0))

    def set_system_prompt(self, prompt: str) -> None:
        """Set the system prompt, or remove it if the text is empty. Does nothing if the text is unchanged."""
        state = self._contents.state
        if prompt != (state.system.content if state.system else ""):
            system = to_message(Role.SYSTEM, prompt)
            entry = prepare_message(system, MAX_TOKENS, self._counter, self._clock()) if prompt else None
            self._contents.set_state(state._replace(system=entry))

    def set_policy(self, policy: WindowPolicy) -> None:
        """Change the policy and trim to it at once. A limit of the current turn remains in force."""
        self.policy = policy
        self._effective_policy = policy.with_limit(self._turn_limit_tokens)
        if self._contents.messages:
            self._trim_if_needed()

    def set_turn_limit(self, tokens: int | None) -> None:
        """Limit all exchanges to `tokens` for the current turn, and trim to that at once. None means no limit.

        Until the exchange is closed or aborted, the smaller of this limit and the policy's budget applies; an abort
        also restores the exchanges that were evicted because of it. Call it before each request: if the exchange is
        still too large, the results of its newest tool round are cut to the remaining room, but none below 100 tokens.
        Raises `NoOpenExchange`.
        """
        contents = self._contents
        exchange = contents.open_exchange or _raise_not_open()
        self._turn_limit_tokens, self._effective_policy = tokens, self.policy.with_limit(tokens)
        if contents.history.tokens + exchange.tokens > self._effective_policy.history_tokens:
            self._trim()
            if contents.tokens > self._effective_policy.history_tokens:
                cut_results_to_fit(contents, exchange, self._effective_policy, self._counter)

    def open(self, text: str, tags: Iterable[str] = ()) -> None:
        """Open a new exchange with the user's text. Raises `ExchangeStillOpen` and `InvalidTag`."""
        contents = self._contents
        self._raise_if_open()
        all_tags = join_tags(INPUT_TAGS, check_tags(tags)) if tags else INPUT_TAGS
        # Equals the result of `prepare_message`, which takes longer because it has to check each part of a message.
        tokens = MESSAGE_FRAME + self._counter.count(text)
        exchange = OpenExchange(to_message(Role.USER, text, (), None, None, all_tags, self._clock(), tokens))
        contents.begin(exchange)
        if contents.history.tokens + exchange.tokens > self._effective_policy.history_tokens:
            self._trim()

    def add(self, message: Message) -> None:
        """Add an assistant message or a tool result to the open exchange.

        Between a tool call and its result the window is not a valid request. Raises `NoOpenExchange`, `InvalidTag`, and
        `InvalidMessage` (`UnknownToolCall`, `DuplicateToolCall`, `UnansweredToolCalls`) for a message not allowed here.
        """
        contents = self._contents
        exchange = contents.open_exchange or _raise_not_open()
        entry = prepare_message(message, self.policy.result_cap_tokens, self._counter, self._clock())
        exchange.append(entry)
        contents.messages.append(entry)
        if contents.history.tokens + exchange.tokens > self._effective_policy.history_tokens:
            self._trim()

    def add_tags(self, *tags: str) -> None:
        """Add tags to the open exchange. Raises `NoOpenExchange` and `InvalidTag`."""
        exchange = self._contents.open_exchange or _raise_not_open()
        exchange.tags = join_tags(exchange.tags, make_tags(tags))

    def add_sources(self, sources: Iterable[str]) -> None:
        """Add the ids of facts and turns that memory recalled for the open exchange. Raises `NoOpenExchange`."""
        exchange = self._contents.open_exchange or _raise_not_open()
        exchange.sources = exchange.sources.union(sources)

    def close(self) -> None:
        """Close the open exchange, replacing its tool results with stubs if the policy requires it.

        Raises `NoOpenExchange` and `UnansweredToolCalls`.
        """
        contents = self._contents
        opened = contents.open_exchange or _raise_not_open()
        exchange = opened.to_exchange(contents.last_number + 1)
        policy = self.policy
        if exchange.has_full_results and (policy.live_tools or policy.stubs_at_close):
            stubs = iter_stubs(exchange.messages, range(len(exchange.messages)), self._counter, policy)
            contents.replace_open_messages(opened, dict(stubs))
            exchange = opened.to_exchange(exchange.number)._replace(has_full_results=not policy.stubs_at_close)
        contents.close(exchange)
        self._turn_limit_tokens, self._effective_policy = None, policy
        self._add_following()

    def close_incomplete(self, text: str = "", calls: Iterable[ToolCall] = ()) -> None:
        """Close the open exchange with the tag "incomplete", because its turn ended early.

        `text` and `calls` are from the answer that was being written and was never added. Each call without a result
        gets one that says that it was interrupted; calls that cannot be added are skipped. Raises `NoOpenExchange`.
        """
        exchange = self._contents.open_exchange or _raise_not_open()
        for message in tuple(exchange.iter_closing_messages(text, calls)):
            self.add(message)
        exchange.tags = join_tags(exchange.tags, _INCOMPLETE_TAGS)
        self.close()

    def abort(self) -> None:
        """Restore the window to its state before `open`. Raises `NoOpenExchange`.

        A policy that was set in the meantime remains in force, and exchanges that exceed it are not restored.
        """
        self._contents.abort(self._contents.open_exchange or _raise_not_open())
        self._turn_limit_tokens, self._effective_policy = None, self.policy
        self._trim_if_needed()
        self._add_following()

    def _add_following(self) -> None:
        """Add the first exchange that waited for the open one to end. Closing it adds the next one."""
        if self._following:
            exchange = self._following.pop(0)
            self.add_exchange(exchange.messages, exchange.tags - exchange.messages[0].tags)

    def add_exchange(self, messages: Iterable[Message], tags: Iterable[str] = ()) -> None:
        """Add a whole exchange that took place outside the window, beginning with the user's message.

        It follows the open exchange if there is one, and is not sent, counted or returned before that has ended. If it
        is not valid, nothing is added. Raises `InvalidMessage`, `InvalidTag` and `UnansweredToolCalls`.
        """
        messages, most = tuple(messages), self.policy.result_cap_tokens
        if not messages:
            raise InvalidMessage("an exchange has at least the user's message")
        exchange = OpenExchange(prepare_message(messages[0], most, self._counter, self._clock()))
        exchange.tags = join_tags(exchange.tags, check_tags(tags))
        if self._contents.open_exchange is not None:
            for message in messages[1:]:
                exchange.append(prepare_message(message, most, self._counter, self._clock()))
            # a call without a result is an error
            exchange.to_exchange()
            self._following.append(exchange)
            self._has_new_following = True
            return
        self._contents.begin(exchange)
        self._trim_if_needed()
        try:
            for message in messages[1:]:
                self.add(message)
            self.close()
        except BaseException:
            self.abort()
            raise

    def tag_exchange(self, number: int, *, add: Iterable[str] = (), remove: Iterable[str] = ()) -> None:
        """Change the tags of a closed exchange. Nothing is evicted before the next trim.

        Raises `UnknownExchange`, `ExchangeStillOpen`, and `InvalidTag`, also for removing an automatic tag.
        """
        self._raise_if_open()
        exchange = self._contents.history.get(number)
        if exchange is None:
            raise UnknownExchange(f"no closed exchange has the number {number!r}")
        self._contents.replace_exchanges([exchange.with_tags(check_tags(add), check_tags(remove))])

    def insert_summary(self, passage: SummaryInput, text: str, native: NativeData | None = None) -> Exchange:
        """Replace a passage with its summary, a protected exchange before the newest one. Return that exchange.

        The model that wrote the summary reads `native` instead of `text`. Apart from evictions, the messages before the
        newest exchange do not change. Raises `ExchangeStillOpen`.
        """
        self._raise_if_open()
        summary = build_summary_exchange(text, self.policy, self._counter, self._clock(), native)
        self._contents.insert_summary(passage, summary)
        self._trim_if_needed()
        return summary

    def record_summary_failure(self, passage: SummaryInput) -> None:
        """Record a failed summary of a passage. After the second failure its exchanges are discarded."""
        state = self._contents.state
        waiting = state.pending_summary
        if waiting is not None:
            is_second = waiting.failed_attempts > 0
            waiting = waiting.without_exchanges(passage.numbers) if is_second else waiting._replace(failed_attempts=1)
        self._contents.state = state._replace(pending_summary=waiting)

    def take_changed_exchanges(self) -> tuple[Exchange, ...] | None:
        """Return the closed exchanges if any has changed since the last call that returned them, else None.

        While an exchange is open, they are those that an abort would restore, and only a new exchange that follows the
        open one counts as a change.
        """
        has_changed = self._has_new_following if self.is_open else self._contents.has_changed
        self._has_new_following = False
        if not has_changed:
            return None
        if self.is_open:
            return self._contents.exchanges_after_abort(self._following)
        self._contents.has_changed = False
        return tuple(self._contents.history)

    def snapshot(self) -> Snapshot:
        """Return a snapshot of the window without an open exchange, as `abort` would restore it."""
        return self._contents.snapshot(self.conversation_id, self._following)

    def restore(self, snapshot: Snapshot) -> None:
        """Load a snapshot into an empty window and trim it to the policy. Messages are not counted again."""
        self._contents.restore(snapshot)
        self._trim_if_needed()

    def _raise_if_open(self) -> None:
        if self._contents.open_exchange is not None:
            raise ExchangeStillOpen("the last exchange is neither closed nor aborted")

    def _trim_if_needed(self) -> None:
        if self._contents.tokens > self._effective_policy.history_tokens:
            self._trim()

    def _trim(self) -> None:
        trim(self._contents, self.policy, self._effective_policy, self._counter)
