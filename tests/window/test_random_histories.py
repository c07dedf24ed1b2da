"""Stateful tests that compare the window with its reference implementation after random operations in any order."""

from dataclasses import replace
from typing import ClassVar, Literal, override

from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
import pytest

from custom_components.windowed_conversation.window import (
    INTERRUPTED_ANSWER,
    INTERRUPTED_CALL,
    DuplicateToolCall,
    ExchangeStillOpen,
    InvalidMessage,
    InvalidTag,
    Message,
    NoOpenExchange,
    ToolCall,
    UnansweredToolCalls,
    UnknownExchange,
    UnknownToolCall,
    WindowPolicy,
)
from custom_components.windowed_conversation.window.summary import SummaryInput, build_older_summary_input

from .histories import (
    Exchange,
    calls,
    capping,
    cost,
    create_window,
    defects,
    exchanges,
    keep_stable_prefix,
    long_texts,
    results,
    said,
    tag_sets,
    texts,
)
from .plain_window import PlainWindow


def is_open(machine: WindowMachine) -> bool:
    return machine.reference.before is not None


def can_continue(machine: WindowMachine) -> bool:
    return is_open(machine) and not machine.pending_calls


def has_pending_calls(machine: WindowMachine) -> bool:
    return bool(machine.pending_calls)


def is_closed(machine: WindowMachine) -> bool:
    return not is_open(machine)


def has_closed_exchanges(machine: WindowMachine) -> bool:
    return is_closed(machine) and bool(machine.reference.numbers)


def can_summarize(machine: WindowMachine) -> bool:
    return is_closed(machine) and machine.window.pending_summary is not None


class WindowMachine(RuleBasedStateMachine):
    """Random turns, policy changes and errors, applied to a window and to its reference implementation."""

    # the number of steps of all machines together
    steps: ClassVar = 0

    @initialize(policy=capping)
    def begin(self, policy: WindowPolicy) -> None:
        self.window = create_window(policy)
        self.reference = PlainWindow(policy)
        self.pending_calls: list[ToolCall] = []
        # the exchanges that took place while another one was open, with their tags
        self.following: list[tuple[Exchange, frozenset[str]]] = []
        self.answered: list[ToolCall] = []
        self.lengths: dict[str | None, int] = {}
        self.sent: list[tuple[object, ...]] = []
        self.trims = 0

    @precondition(is_closed)
    @rule(text=texts, tagged=tag_sets)
    def open(self, text: str, tagged: frozenset[str]) -> None:
        self.window.open(text, tagged)
        self.reference.open(Message.user(text), tagged)

    @precondition(can_continue)
    @rule(text=texts)
    def add_text(self, text: str) -> None:
        self._add(Message.assistant(text))

    @precondition(can_continue)
    @rule(text=texts, amount=st.integers(1, 3))
    def call(self, text: str, amount: int) -> None:
        called = calls(amount)
        self._add(Message.assistant(text, tool_calls=called))
        self.pending_calls.extend(called)

    @precondition(has_pending_calls)
    @rule(text=long_texts, data=st.data())
    def add_result(self, text: str, data: st.DataObject) -> None:
        call = self.pending_calls.pop(data.draw(st.integers(0, len(self.pending_calls) - 1)))
        self.answered.append(call)
        self.lengths[call.id] = len(text)
        result, limit = Message.tool(call.id, call.name, text), self.reference.policy.result_cap_tokens
        self.window.add(result)
        entered = replace(result, content=self.window.messages()[-1].content)
        kept = entered.content.count("x")
        cut = f"{'x' * kept}\n[Cut: these are the first {kept} of {len(text)} characters.]"
        assert entered.content == (cut if cost((result,)) > limit else text)
        assert cost((entered,)) <= limit
        self.reference.add(entered)

    @precondition(is_open)
    @rule(limit=st.none() | st.integers(-50, 1500))
    def limit(self, limit: int | None) -> None:
        self.window.set_turn_limit(limit)
        most, to_cut = self.reference.set_limit(limit)
        sent = {message.tool_call_id: message.content for message in self.window.messages()}
        cuts = [replace(result, content=sent[result.tool_call_id]) for result in to_cut]
        for cut in cuts:
            kept = cut.content.count("x")
            length = self.lengths[cut.tool_call_id]
            assert cut.content == f"{'x' * kept}\n[Cut: these are the first {kept} of {length} characters.]"
            assert most / 2 < cost((cut,)) <= most
        self.reference.cut(cuts)

    @precondition(is_open)
    @rule(text=texts, amount=st.integers(0, 2), data=st.data())
    def close_incomplete(self, text: str, amount: int, data: st.DataObject) -> None:
        new = calls(amount)
        under_way = data.draw(st.permutations([*new, *new[:1], *self.answered[:1], *self.pending_calls[:1]]))
        added = tuple(dict.fromkeys(call.id for call in under_way if call in new))
        called = tuple(call for known in added for call in new if call.id == known)
        self.window.close_incomplete(text, tuple(under_way))
        interrupted = [*results(tuple(self.pending_calls), INTERRUPTED_CALL)]
        interrupted += [Message.assistant(tool_calls=called), *results(called, INTERRUPTED_CALL)] * bool(called)
        interrupted.append(Message.assistant(f"{text}\n{INTERRUPTED_ANSWER}".lstrip()))
        self.reference.close_incomplete(interrupted)
        self._follow()
        self.pending_calls.clear()
        self.answered.clear()
        self.sent = []

    def _add(self, message: Message) -> None:
        self.window.add(message)
        self.reference.add(message)

    @precondition(is_open)
    @rule(tagged=tag_sets)
    def tag(self, tagged: frozenset[str]) -> None:
        self.window.add_tags(*tagged)
        self.reference.tag(tagged)

    @precondition(can_continue)
    @rule()
    def close(self) -> None:
        self.sent = said(keep_stable_prefix(self.window.messages(), self.window.policy))
        self.window.close()
        self.reference.close()
        self._follow()
        self.answered.clear()

    @precondition(is_open)
    @rule()
    def abort(self) -> None:
        self.window.abort()
        self.reference.abort()
        self._follow()
        self.pending_calls.clear()
        self.answered.clear()
        self.sent = []

    @precondition(is_closed)
    @rule(exchange=exchanges(texts), tagged=tag_sets)
    def record(self, exchange: Exchange, tagged: frozenset[str]) -> None:
        self.window.add_exchange(exchange, tagged)
        self._record(exchange, tagged)

    @precondition(is_open)
    @rule(exchange=exchanges(texts), tagged=tag_sets)
    def record_after_the_open_one(self, exchange: Exchange, tagged: frozenset[str]) -> None:
        self.window.add_exchange(exchange, tagged)
        self.following.append((exchange, tagged))

    def _follow(self) -> None:
        for exchange, tagged in self.following:
            self._record(exchange, tagged)
        self.following.clear()

    def _record(self, exchange: Exchange, tagged: frozenset[str]) -> None:
        self.reference.open(exchange[0], tagged)
        for message in exchange[1:]:
            self.reference.add(message)
        self.reference.close()

    @precondition(has_closed_exchanges)
    @rule(added=tag_sets, removed=tag_sets, data=st.data())
    def tag_exchange(self, added: frozenset[str], removed: frozenset[str], data: st.DataObject) -> None:
        place = data.draw(st.integers(0, len(self.reference.numbers) - 1))
        self.window.tag_exchange(self.reference.numbers[place], add=added, remove=removed - {"input"})
        self.reference.tags[place] = self.reference.tags[place] - (removed - {"input"}) | added

    @precondition(can_summarize)
    @rule(text=long_texts)
    def summarize_evicted_exchanges(self, text: str) -> None:
        passage = self.window.pending_summary
        assert passage is not None
        self._summarize(passage, text)

    @precondition(has_closed_exchanges)
    @rule(text=long_texts, keep=st.integers(1, 3))
    def summarize_older_exchanges(self, text: str, keep: int) -> None:
        passage = build_older_summary_input(None, self.window.exchanges(), keep)
        self._summarize(passage or SummaryInput(), text)

    def _summarize(self, passage: SummaryInput, text: str) -> None:
        going = passage.numbers & set(self.reference.numbers)
        newest = self.reference.exchanges[-1]
        self.sent = [] if going else said(self.window.messages())[: -len(newest)]
        question, answer = self.window.insert_summary(passage, text).messages
        assert cost((question, answer)) <= self.reference.policy.summary_tokens
        kept = answer.content.count("x")
        cut = f"{'x' * kept}\n[Cut: these are the first {kept} of {len(text)} characters.]"
        assert answer.content in (text, cut)
        self.reference.summarize(passage.numbers, [question, answer])
        assert not passage.numbers & (self.window.pending_summary or SummaryInput()).numbers

    @precondition(can_summarize)
    @rule()
    def fail_to_summarize(self) -> None:
        passage = self.window.pending_summary
        assert passage is not None
        self.window.record_summary_failure(passage)
        left = self.window.pending_summary
        assert left == (None if passage.failed_attempts else passage._replace(failed_attempts=1))

    @rule(wanted=tag_sets, match=st.sampled_from(["any", "all"]), excluded=tag_sets)
    def view(self, wanted: frozenset[str], match: Literal["any", "all"], excluded: frozenset[str]) -> None:
        view = self.window.messages(tags=wanted, match=match, exclude=excluded)
        assert said(view) == said(self.reference.view(wanted, match, excluded))
        assert bool(defects(view)) == bool(self.pending_calls)

    @rule(prompt=texts)
    def set_system(self, prompt: str) -> None:
        self.window.set_system_prompt(prompt)
        self.reference.system = prompt
        self.sent = []

    @rule(policy=capping)
    def set_policy(self, policy: WindowPolicy) -> None:
        self.window.set_policy(policy)
        self.reference.set_policy(policy)

    @precondition(is_open)
    @rule()
    def fail_to_begin_another(self) -> None:
        with pytest.raises(ExchangeStillOpen):
            self.window.open("again")
        with pytest.raises(ExchangeStillOpen):
            self.window.tag_exchange(1, add={"important"})
        with pytest.raises(ExchangeStillOpen):
            self.window.insert_summary(SummaryInput(), "nothing")

    @precondition(is_closed)
    @rule()
    def fail_without_an_exchange(self) -> None:
        with pytest.raises(NoOpenExchange):
            self.window.add(Message.assistant("hello"))
        with pytest.raises(NoOpenExchange):
            self.window.add_tags("important")
        with pytest.raises(NoOpenExchange):
            self.window.close()
        with pytest.raises(NoOpenExchange):
            self.window.close_incomplete()
        with pytest.raises(NoOpenExchange):
            self.window.set_turn_limit(100)
        with pytest.raises(NoOpenExchange):
            self.window.abort()
        with pytest.raises(UnknownExchange):
            self.window.tag_exchange(self.reference.closed + 1, add={"important"})

    @precondition(is_open)
    @rule(role=st.sampled_from([Message.user("and?"), Message.system("obey")]))
    def fail_to_add_misplaced_message(self, role: Message) -> None:
        with pytest.raises(InvalidMessage):
            self.window.add(role)

    @precondition(is_open)
    @rule(data=st.data())
    def fail_to_add_unrequested_result(self, data: st.DataObject) -> None:
        known = data.draw(st.sampled_from([*self.answered, *calls(1)]))
        with pytest.raises(UnknownToolCall):
            self.window.add(Message.tool(known.id, known.name, "done"))

    @precondition(can_continue)
    @rule(data=st.data())
    def fail_to_reuse_call_id(self, data: st.DataObject) -> None:
        (new,) = calls(1)
        twice = data.draw(st.sampled_from([(new, new), *((new, call) for call in self.answered)]))
        with pytest.raises(DuplicateToolCall):
            self.window.add(Message.assistant(tool_calls=twice))

    @precondition(has_pending_calls)
    @rule()
    def fail_to_continue_without_results(self) -> None:
        with pytest.raises(UnansweredToolCalls):
            self.window.close()
        with pytest.raises(UnansweredToolCalls):
            self.window.add(Message.assistant("done"))

    @rule(exchange=exchanges(texts), broken=st.sampled_from([Message.user("and?"), Message.tool("no", "no", "no")]))
    def fail_to_add_invalid_exchange(self, exchange: Exchange, broken: Message) -> None:
        with pytest.raises(InvalidMessage):
            self.window.add_exchange((*exchange, broken))
        with pytest.raises(InvalidTag):
            self.window.add_exchange(exchange, {" "})
        with pytest.raises(InvalidTag):
            self.window.add_exchange((*exchange, Message.assistant("done", tags=frozenset({""}))))

    @invariant()
    def count_step(self) -> None:
        WindowMachine.steps += 1

    @invariant()
    def window_equals_reference(self) -> None:
        assert said(self.window.messages()) == said(self.reference.messages())
        history = [message for exchange in self.reference.exchanges for message in exchange]
        tokens, budget = cost(tuple(history)), self.reference.policy.history_tokens
        assert self.window.stats() == (
            len(history),
            len(self.reference.exchanges),
            tokens,
            budget,
            min(100, 100 * tokens / budget),
            cost((Message.system(self.reference.system),)) if self.reference.system else 0,
            tokens > self.reference.in_force.history_tokens,
            self.reference.count_tags(),
            *self.reference.evicted,
            self.reference.protected_tokens(),
        )

    @invariant()
    def exchange_numbers_are_increasing(self) -> None:
        closed = len(self.reference.numbers) - is_open(self)
        assert [exchange.number for exchange in self.window.exchanges()] == self.reference.numbers[:closed]

    @invariant()
    def only_pending_exchanges_are_held(self) -> None:
        held = self.window.pending_summary or SummaryInput()
        assert self.reference.policy.summarize or not held.numbers
        assert not held.numbers & set(self.reference.numbers)

    @invariant()
    def at_most_one_summary_exists(self) -> None:
        assert sum("summary" in exchange.tags for exchange in self.window.exchanges()) == bool(self.reference.summary)

    @invariant()
    def answered_request_is_valid(self) -> None:
        assert bool(defects(self.window.messages())) == bool(self.pending_calls)

    @invariant()
    def only_trims_change_sent_messages(self) -> None:
        sent, self.sent = self.sent, said(self.window.messages())
        trimmed = self.window.stats().trims > self.trims
        self.trims = self.window.stats().trims
        assert trimmed or self.sent[: len(sent)] == sent


@pytest.mark.long
class TestRandomHistories(WindowMachine.TestCase):  # type: ignore[misc, valid-type]  # Hypothesis makes the class
    settings = settings(deadline=None, max_examples=600, stateful_step_count=60)

    @override
    def runTest(self) -> None:
        WindowMachine.steps = 0
        super().runTest()
        assert WindowMachine.steps >= 20_000


def test_limit_of_a_turn_frees_the_smaller_share() -> None:
    machine = WindowMachine()
    machine.begin(policy=WindowPolicy(190, None, "stub", None, result_cap_tokens=100, summarize=False))
    for length in (37, 37, 96):
        machine.record(exchange=(Message.user("x" * length),), tagged=frozenset({"ephemeral"}))
    machine.open(tagged=frozenset(), text="")
    machine.limit(limit=176)
    machine.exchange_numbers_are_increasing()
    machine.window_equals_reference()
