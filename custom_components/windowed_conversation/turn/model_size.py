"""The context size of a model, learned from its server's statements and from answered, billed and refused requests."""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
import time
from typing import Any, Self

from ..providers import Request, ToolSchema, Usage, count_messages_tokens
from ..window import MAX_FACTOR, MAX_TOKENS, MIN_FACTOR, Message, Role, estimate_request, frame_tokens, is_int_in_range
from .context import extract_user_text

# How many recent requests the next one is compared with. There are several because conversations may alternate.
_MAX_RECENT_BILLS = 32

# Lower bound, in tokens, of a plausible context size. Servers that bill only the tokens outside their cache report less
# than this.
_MIN_CONTEXT_TOKENS = 1000

# The minimum size of the added messages, in tokens of our own count, for which a bill can be judged too small. The chat
# template may change smaller amounts around the newest message.
_MIN_ADDED_TOKENS = 64

# How many consecutive bills of a server must be plausible before a small one is believed.
_MIN_PLAUSIBLE_BILLS = 2

# A server that drops messages drops only as many as it has to, so a bill below this share of an earlier one has another
# cause.
_MIN_REMAINING_SHARE = 0.5

# The latest plausible time, in seconds since the epoch.
_MAX_TIMESTAMP = 10**12

# A larger request is tried after this many requests that a learned size has limited. Each such try that is refused
# doubles the number, so that a server that does not change refuses fewer and fewer requests.
_MIN_PATIENCE_REQUESTS, _MAX_PATIENCE_REQUESTS = 8, 1024

# The tolerance of a comparison, as a share. A refusal at most this far below the previously refused size confirms it. A
# refusal without a known reason counts only if the request was larger by this share than any that was answered.
_SIZE_TOLERANCE = 0.1

# A learned size is considered to limit a request that fills this share of it: a trim keeps three quarters of the
# history.
_LIMITED_REQUEST_SHARE = 0.75

# How many refusals are needed to believe the size that they show: a single one may be a fault of the server.
_MIN_REFUSALS = 2

# How long a refusal or a size named by the server is valid, in seconds: the server may be restarted with a larger
# context.
_SIZE_VALIDITY_SECONDS = 24 * 60 * 60


@dataclass(frozen=True, slots=True)
class _RequestBill:
    """A request that was billed: its messages and tools, the billed input tokens, and the model that answered."""

    # Empty in a bill that is kept for comparison, so that forgotten messages do not survive here.
    messages: tuple[Message, ...]
    # The hashes of all messages.
    message_hashes: tuple[int, ...]
    # Whether the request ends with the user's text.
    is_question: bool
    # The size of the last message, including the live context, which no later turn sends.
    last_message_tokens: int
    tools: tuple[ToolSchema, ...]
    billed_tokens: int
    server_identity: str

    @classmethod
    def from_request(cls, request: Request, usage: Usage, server: str) -> Self | None:
        """Return the record of a request, or None if its bill cannot be compared with others.

        Providers bill differently for context that they have cleared on request, and for requests that forbid calls.
        """
        unclear = not usage.input or usage.cleared or (request.tools and not request.may_call)
        if unclear or not server:
            return None
        messages = request.messages
        is_question = bool(messages) and messages[-1].role is Role.USER
        last_tokens, marks = count_messages_tokens(messages[-1:]), tuple([_hash_message(each) for each in messages])
        return cls(messages, marks, is_question, last_tokens, request.tools, usage.input, server)

    def find_added_messages(self, earlier: Self) -> Sequence[Message] | None:
        """Return the messages by which this request extends an earlier one, or None if the two cannot be compared.

        Only the first requests of two turns, or requests of the same turn, are comparable. The other requests of a turn
        look different in the next one: results become stubs, and templates remove reasoning.
        """
        begun = len(earlier.message_hashes)
        added = self.messages[begun:]
        is_same = (earlier.server_identity, earlier.tools) == (self.server_identity, self.tools)
        if not added or not is_same or self.message_hashes[:begun] != earlier.message_hashes:
            return None
        if Role.USER in [each.role for each in added] and not (earlier.is_question and self.is_question):
            return None
        return added

    @property
    def min_read_tokens(self) -> int:
        """The estimated tokens of the parts that every server reads: system prompt, tools and the newest message."""
        system = [each for each in self.messages if each.role is Role.SYSTEM]
        return estimate_request([*system, self.messages[-1]], (tool.text for tool in self.tools)).text_tokens


class BillHistory:
    """The recent bills of one model. They are only used once the server's counting has proved plausible."""

    def __init__(self) -> None:
        self._recent_bills: deque[_RequestBill] = deque(maxlen=_MAX_RECENT_BILLS)
        # The number of consecutive plausible steps.
        self._consistent_count = 0
        # Whether the model was ever billed for calls and results: some chat templates leave them out.
        self._bills_tool_rounds = False

    def add_bill(self, request: Request, usage: Usage, server: str) -> int | None:
        """Record the bill of a request. If it shows that the server read only part of it, return the server's size.

        The size is the greatest of the compared bills, in tokens, without the answer, because some servers drop the
        oldest messages while they answer.
        """
        sent = _RequestBill.from_request(request, usage, server)
        if sent is None:
            return None
        steps = [
            _compare_bills(each, sent, added)
            for each in self._recent_bills
            if (added := sent.find_added_messages(each)) is not None
        ]
        self._recent_bills.append(replace(sent, messages=()))
        if not steps:
            return None
        is_cut = bool([step for step in steps if step.is_short and (self._bills_tool_rounds or not step.is_tool_round)])
        newest = steps[-1]
        if not newest.is_plausible(is_cut=is_cut):
            self._consistent_count = 0
            return None
        self._consistent_count += 1
        self._bills_tool_rounds |= newest.is_tool_round and 0 < MIN_FACTOR * newest.min_growth <= newest.growth
        if not is_cut or self._consistent_count <= _MIN_PLAUSIBLE_BILLS:
            return None
        return max(sent.billed_tokens, *(step.earlier_bill.billed_tokens for step in steps))


@dataclass(frozen=True, slots=True)
class _BillComparison:
    """A request that extends an earlier one by some messages."""

    earlier_bill: _RequestBill
    newer_bill: _RequestBill
    added_messages: Sequence[Message]
    # Whether this is a step in a tool loop.
    is_tool_round: bool
    # The tokens by which the bill has grown.
    growth: int
    # The size of the added messages that every template includes: only the spoken ones if the turn has ended.
    min_growth: int
    # Whether the bill has grown by far less than any model needs for these messages.
    is_short: bool

    def is_plausible(self, *, is_cut: bool) -> bool:
        """Return whether the bill is plausible for a server that counts everything that it reads."""
        if is_cut or self.growth <= 0:
            return self.newer_bill.billed_tokens >= max(
                _MIN_CONTEXT_TOKENS,
                _MIN_REMAINING_SHARE * self.earlier_bill.billed_tokens,
                MIN_FACTOR * self.newer_bill.min_read_tokens,
            )
        return self.growth <= MAX_FACTOR * count_messages_tokens(self.added_messages) + _MIN_ADDED_TOKENS


def _compare_bills(earlier: _RequestBill, newer: _RequestBill, added: Sequence[Message]) -> _BillComparison:
    is_round, last = not newer.is_question, len(earlier.message_hashes) - 1
    shown = [each for each in added if is_round or not (each.tool_calls or each.role is Role.TOOL)]
    # counted as in the window, but without residue and frames
    texts = count_messages_tokens(shown) - sum([frame_tokens(each) for each in shown])
    # the live context of the earlier request, which the newer request does not have
    removed = earlier.last_message_tokens - count_messages_tokens(newer.messages[last : last + 1])
    grown, least = newer.billed_tokens - earlier.billed_tokens, texts - removed
    is_short = least >= _MIN_ADDED_TOKENS and grown < MIN_FACTOR * least / 2
    return _BillComparison(earlier, newer, added, is_round, grown, least, is_short)


def _hash_message(message: Message) -> int:
    """Return a hash that identifies a message within its conversation. It is valid only in this process."""
    calls = tuple([(call.id, call.name) for call in message.tool_calls])
    content = extract_user_text(message.content) if message.role is Role.USER else message.content
    return hash((message.role, content, message.created, calls, message.tool_call_id))


@dataclass(slots=True)
class _LearnedSizes:
    """The learned sizes, in tokens."""

    # The part of a longer request that the server reads, according to its answer to a query or to its bills.
    reads: int | None = None
    # The size that the server named in a refusal.
    named: int | None = None
    # The largest request that was answered.
    served: int = 0
    # The largest request that was answered since the first of the counted refusals.
    since: int = 0
    # The smallest request that was refused since `served` was answered.
    refused: int | None = None
    # The refused size that was forgotten in order to try a larger request.
    tried: int | None = None
    # The number of refusals, until they are believed.
    refusals: int = 0
    # The number of requests that the learned size limited.
    limited: int = 0
    # The number of limited requests after which a larger one is tried.
    patience: int = _MIN_PATIENCE_REQUESTS
    # The time of the last refusal or named size, in seconds since the epoch.
    at: float = 0.0

    @property
    def size_from_refusals(self) -> int | None:
        """The size that the refusals show, or None if there are too few to believe them."""
        if self.refused is None or self.refusals < _MIN_REFUSALS:
            return None
        return max(min(self.calculate_midpoint(self.refused), self.refused - 1), 1)

    def calculate_midpoint(self, refused: int) -> int:
        """Return the midpoint between the largest answered request and the given refused size.

        Requests stay below it by the tokens reserved for the answer, so none is refused once it is close to the true
        size.
        """
        return (self.served + refused) // 2

    def forget_refusals(self) -> None:
        """Forget the refusals, and the requests that were answered since then."""
        self.refused, self.refusals, self.since, self.limited = None, 0, 0, 0


class ContextSizeTracker:
    """The known size of one model of an account, in tokens of planned requests, including their answers.

    Shared by all agents that use the model.
    """

    def __init__(self, on_change: Callable[[], None] = lambda: None, *, clock: Callable[[], float] = time.time) -> None:
        # Called when something worth storing was learned.
        self._on_change = on_change
        # Returns seconds since the epoch.
        self._clock = clock
        self._sizes = _LearnedSizes()
        # the tokens of the newest request that was answered, without its answer
        self._last_answered_tokens: int | None = None
        # The newest refusal without a known reason: the hash of the newest exchange in it, and its tokens.
        self._unexplained_refusal: tuple[int, int] | None = None
        self._bill_history = BillHistory()
        # Whether a bill contradicts the known size, so that a server that can be queried should be queried again. The
        # caller that does so resets it.
        self.may_have_changed = False
        # The ratio of billed to planned tokens of the newest request that was read completely, at least 1.
        self._billed_ratio = 1.0
        self._is_request_cut = False

    @property
    def readable_tokens(self) -> int | None:
        """How many tokens of a longer request the server reads, learned from a query or from bills; None if unknown."""
        return self._sizes.reads

    def get_context_tokens(self, listed: int | None = None) -> int | None:
        """Return the size to plan with, or None if it is unknown; `listed` is the size in the model's list or profile.

        A listed or named size is raised to the largest request that was answered. The result is always below a request
        whose refusal is believed.
        """
        self._expire_old_sizes()
        learned = self._sizes.size_from_refusals
        size = self._sizes.reads and max(int(self._sizes.reads / self._billed_ratio), 1)
        named = self._sizes.named or listed
        if size is None and named is not None:
            size = max(named, self._sizes.served)
        return size if learned is None else min(size or learned, learned)

    def get_retry_tokens(self, refused: int) -> int | None:
        """Return the maximum tokens of the smaller request to send after a refusal, or None if that is unknown."""
        self._expire_old_sizes()
        sizes = self._sizes
        stated = sizes.reads or sizes.named or refused
        size = min(stated, sizes.calculate_midpoint(refused) if sizes.served < refused else refused)
        return size if size < refused else None

    def exceeds_last_answered(self, tokens: int) -> bool:
        """Return whether a request is larger than the last one that was answered, or whether none was answered yet."""
        return self._last_answered_tokens is None or tokens > self._last_answered_tokens

    def on_answered(self, tokens: int, answer: int = 0, billed: int = 0) -> None:
        """Learn from a request that was answered: its planned tokens, and those of its answer.

        `billed` is the number of tokens that the provider billed for both, or 0 if it sent no usage.
        """
        self._expire_old_sizes()
        sizes = self._sizes
        refusals = sizes.refused, sizes.tried
        total = min(max(tokens + answer, billed), MAX_TOKENS)
        if sizes.reads is not None:
            total = min(total, sizes.reads)
        self._last_answered_tokens = tokens
        if billed > answer and tokens > 0 and not self._is_request_cut:
            # the request was read completely; messages that were counted earlier keep their token counts, so the plan
            # may be too low
            self._billed_ratio = min(max((billed - answer) / tokens, 1.0), MAX_FACTOR)
        if self._unexplained_refusal is not None and tokens >= self._unexplained_refusal[1]:
            self._unexplained_refusal = None
        sizes.served = max(sizes.served, total)
        if sizes.tried is not None and tokens >= sizes.tried:
            sizes.tried, sizes.patience = None, _MIN_PATIENCE_REQUESTS
        if sizes.refused is not None:
            self._learn_after_refusal(sizes.refused, tokens, total)
        # a new `sizes.served` alone is not stored: it is stored together with the refusals
        if refusals != (sizes.refused, sizes.tried):
            self._on_change()

    def _learn_after_refusal(self, refused: int, tokens: int, total: int) -> None:
        sizes = self._sizes
        if tokens >= refused:
            sizes.forget_refusals()
            sizes.patience = _MIN_PATIENCE_REQUESTS
            return
        if total < refused:
            sizes.since = max(sizes.since, total)
        learned = sizes.size_from_refusals
        if learned is not None and tokens >= _LIMITED_REQUEST_SHARE * learned:
            sizes.limited += 1
            if sizes.limited >= sizes.patience:
                sizes.tried = refused
                sizes.forget_refusals()

    def on_refused(self, refused: int, served: int) -> None:
        """Learn from a request that was refused as too long while a smaller one was answered instead."""
        self._expire_old_sizes()
        sizes = self._sizes
        least = min(size for size in (refused, sizes.refused, MAX_TOKENS) if size is not None)
        sizes.refusals = min(sizes.refusals + 1, _MIN_REFUSALS)
        if sizes.tried is not None and refused >= (1 - _SIZE_TOLERANCE) * sizes.tried:
            # the try has failed: the refused size that was forgotten is still valid
            least, sizes.refusals = min(least, sizes.tried), _MIN_REFUSALS
            sizes.patience = min(2 * sizes.patience, _MAX_PATIENCE_REQUESTS)
        sizes.tried = None
        sizes.since = served if sizes.since >= least else max(sizes.since, served)
        sizes.refused, sizes.limited, sizes.at = least, 0, self._clock()
        if sizes.refusals == _MIN_REFUSALS and sizes.served >= least:
            # two refusals in a row below the largest answered request mean that the server reads less now, unless the
            # difference is so small that only the counting differs
            sizes.served = least - 1 if least >= (1 - _SIZE_TOLERANCE) * sizes.served else min(sizes.since, least - 1)
        self._on_change()

    def on_unexplained_refusal(self, refused: int, served: int, newest: int) -> None:
        """Learn from a request that was refused for no known reason while a smaller one was answered instead.

        Anything in the request may be the reason. So the size counts only after two refusals with different newest
        exchanges (`newest` is the hash of that exchange), each a tenth larger than everything that was answered.
        """
        self._expire_old_sizes()
        sizes, before = self._sizes, self._unexplained_refusal
        if sizes.tried is not None and refused >= (1 - _SIZE_TOLERANCE) * sizes.tried:
            self.on_refused(refused, served)
        elif refused >= (1 + _SIZE_TOLERANCE) * sizes.served:
            self._unexplained_refusal = newest, refused
            if before is not None and before[0] != newest and before[1] >= (1 + _SIZE_TOLERANCE) * sizes.served:
                self._unexplained_refusal = None
                self.on_refused(before[1], served)
                self.on_refused(refused, served)

    def on_size_named(self, tokens: int) -> None:
        """Learn from the context size, in tokens, that the server named when it refused a request."""
        self._sizes.named, self._sizes.reads = min(max(tokens, 1), MAX_TOKENS), None
        self._sizes.at = self._clock()
        self._on_change()

    def on_size_queried(self, tokens: int) -> None:
        """Learn how many tokens the server reads, which it returned when it was queried or which its bills show."""
        sizes = self._sizes
        sizes.reads, sizes.at = min(max(tokens, 1), MAX_TOKENS), self._clock()
        sizes.served, sizes.since = min(sizes.served, sizes.reads), min(sizes.since, sizes.reads)
        self._on_change()

    def on_billed(self, request: Request, usage: Usage, server: str) -> bool:
        """Learn from the bill of a request. Return whether the server read only part of the request.

        `server` is the server's name for the model that answered, see `AnswerDone.server_identity`.
        """
        self._is_request_cut = False
        if not request.has_own_size(usage):
            return False
        self._expire_old_sizes()
        reads = self._sizes.reads
        if reads is not None and usage.output and usage.input > reads:
            # a slightly larger bill refines the learned size; a much larger one means that the size has changed
            reads = self._sizes.reads = usage.input if usage.input <= (1 + _SIZE_TOLERANCE) * reads else None
            self.may_have_changed = True
            self._on_change()
        size = self._bill_history.add_bill(request, usage, server)
        self._is_request_cut = size is not None
        if size is not None:
            self.may_have_changed = True
            self.on_size_queried(size if reads is None else min(size, reads))
        return self._is_request_cut

    def reset(self) -> None:
        """Forget everything that was learned about the size."""
        self._unexplained_refusal, self._bill_history = None, BillHistory()
        if self._sizes != _LearnedSizes():
            self._sizes = _LearnedSizes()
            self._on_change()

    def as_dict(self) -> dict[str, Any]:
        """Return the values to store for a restart, or an empty dictionary if nothing was learned."""
        return {} if self._sizes == _LearnedSizes() else asdict(self._sizes)

    @classmethod
    def from_dict(
        cls,
        values: object,
        on_change: Callable[[], None] = lambda: None,
        *,
        clock: Callable[[], float] = time.time,
    ) -> Self:
        """Return a `ContextSizeTracker` restored from the values of `as_dict`; damaged data is ignored."""
        size = cls(on_change, clock=clock)
        if isinstance(values, Mapping) and values.keys() == asdict(size._sizes).keys() and _are_valid_values(values):
            size._sizes = _LearnedSizes(**values)
        return size

    def _expire_old_sizes(self) -> None:
        """Forget sizes that are a day old, or that seem so because the clock was set back by a day or more."""
        sizes = self._sizes
        if sizes.at and abs(self._clock() - sizes.at) >= _SIZE_VALIDITY_SECONDS:
            sizes.reads, sizes.named, sizes.tried = None, None, None
            sizes.at, sizes.patience = 0.0, _MIN_PATIENCE_REQUESTS
            sizes.forget_refusals()


def _are_valid_values(values: Mapping[str, Any]) -> bool:
    return (
        all(values[name] is None or is_int_in_range(values[name], 1) for name in ("reads", "named", "refused", "tried"))
        and all(is_int_in_range(values[name]) for name in ("served", "since", "refusals", "limited"))
        and is_int_in_range(values["patience"], _MIN_PATIENCE_REQUESTS, _MAX_PATIENCE_REQUESTS)
        and isinstance(values["at"], int | float)
        and 0 <= values["at"] < _MAX_TIMESTAMP
    )
