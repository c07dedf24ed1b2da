"""Tests of the window's rules over random histories. The numbers of the rules are those of the design."""

from itertools import pairwise

from hypothesis import given, settings, strategies as st

from custom_components.windowed_conversation.window import Message, Role, WindowPolicy

from .histories import (
    Exchange,
    LengthCounter,
    Tagged,
    all_policies,
    by_exchange,
    calls,
    cost,
    create_window,
    defects,
    exchanges,
    histories,
    keep_stable_prefix,
    keeping,
    play,
    played,
    recorded,
    results,
    said,
    short_histories,
    steps,
    stubbing,
    stubbing_late,
    tag_sets,
    tagged_histories,
    texts,
    tool_loops,
    without_system,
)
from .plain_window import after_trim, goes_with, round_places, stub_results

by_rule = settings(deadline=None, max_examples=settings().max_examples * 3 // 2)
limits = st.none() | st.integers(-50, 1500)


@by_rule
@given(histories, all_policies, texts)
def test_rule_1_every_request_is_one_that_a_provider_accepts(
    history: list[Exchange], policy: WindowPolicy, system: str
) -> None:
    window = create_window(policy, system)
    found = [defects(window.messages()) for _ in steps(window, history)]
    assert not any(found)


@by_rule
@given(short_histories, keeping)
def test_rule_2_the_newest_exchange_is_sent_whole(history: list[Exchange], policy: WindowPolicy) -> None:
    window = create_window(policy)
    for exchange in history:
        window.add_exchange(exchange)
        assert said(window.messages())[-len(exchange) :] == said(exchange)


@by_rule
@given(short_histories, all_policies)
def test_rule_2_an_open_exchange_is_sent_whole_from_its_first_message_on(
    history: list[Exchange], policy: WindowPolicy
) -> None:
    window = played(history[:-1], policy)
    first, *others = history[-1]
    window.open(first.content)
    for written, message in enumerate(others, start=2):
        window.add(message)
        assert said(window.messages())[-written:] == said(history[-1][:written])


@by_rule
@given(histories, all_policies)
def test_rule_2_the_window_says_when_the_newest_exchange_is_over_the_budget(
    history: list[Exchange], policy: WindowPolicy
) -> None:
    window = create_window(policy)
    for _ in steps(window, history):
        newest = by_exchange(window.messages())[-1]
        assert window.stats().over_budget == (cost(tuple(newest)) > policy.history_tokens)


@by_rule
@given(histories, all_policies, texts)
def test_rule_3_the_sums_are_those_of_the_messages_that_are_sent(
    history: list[Exchange], policy: WindowPolicy, system: str
) -> None:
    window = create_window(policy, system)
    for _ in steps(window, history):
        stats, kept = window.stats(), without_system(window.messages())
        assert (stats.current_tokens, stats.message_count, stats.exchange_count, stats.prefix_tokens) == (
            cost(kept),
            len(kept),
            len(by_exchange(kept)),
            cost((Message.system(system),)) * bool(system),
        )


@by_rule
@given(short_histories, keeping)
def test_rule_4_the_oldest_exchanges_go_first_and_whole(history: list[Exchange], policy: WindowPolicy) -> None:
    window = played(history, policy)
    everything = [message for exchange in history for message in exchange]
    evicted = window.stats().evicted_exchanges
    assert said(window.messages()) == said(tuple(everything[sum(len(exchange) for exchange in history[:evicted]) :]))


@by_rule
@given(histories, all_policies, texts)
def test_rule_4_between_trims_a_request_less_its_volatile_tail_begins_the_next_one(
    history: list[Exchange], policy: WindowPolicy, system: str
) -> None:
    window = create_window(policy, system)
    seen = [(window.stats().trims, window.is_open, window.messages()) for _ in steps(window, history)]
    for (trims_before, open_before, before), (trims_after, open_after, after) in pairwise(seen):
        is_closed_between = open_before and not open_after
        stays = keep_stable_prefix(before, policy) if is_closed_between else before
        assert trims_after > trims_before or said(after)[: len(stays)] == said(stays)


@by_rule
@given(short_histories, all_policies)
def test_rule_4_nothing_goes_until_the_budget_is_exceeded(history: list[Exchange], policy: WindowPolicy) -> None:
    window = create_window(policy)
    for exchange in history:
        before, trims = window.messages(), window.stats().trims
        window.add_exchange(exchange)
        assert (window.stats().trims > trims) == (
            bool(before) and cost(before) + cost(exchange) > policy.history_tokens
        )


@by_rule
@given(histories, exchanges(), keeping)
def test_rule_4_a_trim_goes_down_to_the_low_water_mark_and_no_further(
    history: list[Exchange], newest: Exchange, policy: WindowPolicy
) -> None:
    window = create_window(WindowPolicy(1_000_000, tool_results="keep"))
    play(window, [*history, newest])
    window.set_policy(policy)
    everything = [list(exchange) for exchange in [*history, newest]]
    assert window.stats().exchange_count == len(after_trim(everything, [set() for _ in everything], policy))


@by_rule
@given(tagged_histories, all_policies)
def test_rule_3_history_fits_or_is_the_newest_exchange_and_protected_ones(
    history: list[Tagged], policy: WindowPolicy
) -> None:
    window = create_window(policy)
    for exchange, tagged in history:
        window.add_exchange(exchange, tagged)
        *older, _ = window.exchanges()
        assert window.stats().current_tokens <= policy.history_tokens or all("important" in e.tags for e in older)


@by_rule
@given(tagged_histories, all_policies)
def test_rule_4_of_exchanges_with_the_same_tags_the_oldest_go_first(
    history: list[Tagged], policy: WindowPolicy
) -> None:
    window = recorded(history, policy)
    kept = {exchange.number for exchange in window.exchanges()[:-1]}
    for group in ("ephemeral", "ordinary", "important"):
        numbers = [n for n, (_, tagged) in enumerate(history[:-1], start=1) if goes_with(set(tagged)) == group]
        left = [number for number in numbers if number in kept]
        assert left == numbers[len(numbers) - len(left) :]


@by_rule
@given(tagged_histories, all_policies)
def test_rule_5_ephemeral_exchanges_go_first_and_important_ones_last(
    history: list[Tagged], policy: WindowPolicy
) -> None:
    window = recorded(history, WindowPolicy(1_000_000))
    before = {exchange.number: goes_with(set(exchange.tags)) for exchange in window.exchanges()[:-1]}
    window.set_policy(policy)
    kept = {exchange.number for exchange in window.exchanges()}
    gone = {group for number, group in before.items() if number not in kept}
    left = {group for number, group in before.items() if number in kept}
    assert "ephemeral" not in left or not gone - {"ephemeral"}
    assert "important" not in gone or left <= {"important"}


@by_rule
@given(tagged_histories, all_policies)
def test_rule_5_important_exchanges_go_only_while_the_budget_itself_is_exceeded(
    history: list[Tagged], policy: WindowPolicy
) -> None:
    window = recorded(history, WindowPolicy(1_000_000))
    before = {exchange.number: exchange for exchange in window.exchanges()}
    window.set_policy(policy)
    kept = {exchange.number for exchange in window.exchanges()}
    gone = [exchange for number, exchange in before.items() if number not in kept and "important" in exchange.tags]
    assert not gone or window.stats().current_tokens + gone[-1].tokens > policy.history_tokens


@by_rule
@given(histories, all_policies)
def test_rule_6_every_call_and_its_result_stay_what_they_are(history: list[Exchange], policy: WindowPolicy) -> None:
    window = played(history, policy)
    everything = [(m.role, m.tool_calls, m.tool_call_id, m.name) for exchange in history for m in exchange]
    left = [(m.role, m.tool_calls, m.tool_call_id, m.name) for m in window.messages()]
    assert left == everything[len(everything) - len(left) :]


@by_rule
@given(histories, stubbing)
def test_rule_6_a_closed_exchange_has_stubs_for_its_results(history: list[Exchange], policy: WindowPolicy) -> None:
    window = played(history, policy)
    everything = [message for exchange in history for message in stub_results(list(exchange))]
    left = without_system(window.messages())
    assert said(left) == said(tuple(everything[len(everything) - len(left) :]))


@by_rule
@given(short_histories, stubbing_late)
def test_rule_6_the_newest_tool_turns_keep_their_results_and_older_ones_lose_them_at_a_trim(
    history: list[Exchange], policy: WindowPolicy
) -> None:
    window = create_window(policy)
    for exchange in history:
        trims = window.stats().trims
        window.add_exchange(exchange)
        left = [message for kept in window.exchanges() for message in kept.messages]
        added = [message for exchange in history[: window.exchanges()[-1].number] for message in exchange]
        whole = added[len(added) - len(left) :]
        rounds = round_places(left)
        newest = rounds[-(policy.max_tool_turns or 0) :]
        assert not newest or said(tuple(left[newest[0] :])) == said(tuple(whole[newest[0] :]))
        older = rounds[-3] if len(rounds) > 3 else 0
        stubs = said(tuple(stub_results(whole[:older])))
        assert window.stats().trims == trims or said(tuple(left[:older])) == stubs


@by_rule
@given(st.integers(0, 5000), st.integers(100, 600))
def test_rule_6_a_result_costs_no_more_than_its_cap_and_says_when_it_was_cut(length: int, limit: int) -> None:
    window = create_window(WindowPolicy(result_cap_tokens=limit))
    window.open("hello")
    (call,) = calls(1)
    window.add(Message.assistant(tool_calls=(call,)))
    (result,) = results((call,), "x" * length)
    window.add(result)
    entered = window.messages()[-1]
    assert cost((entered,)) == entered.tokens
    assert cost((entered,)) <= limit
    assert (entered.content == result.content) == (cost((result,)) <= limit)
    assert entered.content.endswith("x" * length) or f"of {length} characters.]" in entered.content


@by_rule
@given(histories, exchanges() | tool_loops, all_policies, tag_sets, st.data())
def test_rule_8_abort_leaves_the_window_as_it_was_before_open(
    history: list[Exchange], newest: Exchange, policy: WindowPolicy, tagged: frozenset[str], data: st.DataObject
) -> None:
    window = played(history, policy, "You are a helpful home.")
    before = window.messages(), window.stats()
    window.open(newest[0].content, tagged)
    for message in newest[1 : data.draw(st.integers(1, len(newest)))]:
        window.add(message)
        window.set_turn_limit(data.draw(limits))
    window.set_system_prompt("Another prompt.")
    window.abort()
    assert (window.messages(), window.stats()) == before


@by_rule
@given(tagged_histories, exchanges(), all_policies)
def test_rule_8_what_is_kept_of_a_window_during_a_turn_is_what_an_abort_leaves(
    history: list[Tagged], newest: Exchange, policy: WindowPolicy
) -> None:
    window, restored = recorded(history, policy), create_window(policy)
    before = window.snapshot()
    window.open(newest[0].content)
    for message in newest[1:]:
        window.add(message)
    assert window.snapshot() == before
    restored.restore(before)
    window.abort()
    assert (restored.messages(), restored.stats()) == (window.messages(), window.stats())


@by_rule
@given(tagged_histories, tagged_histories, all_policies)
def test_rule_8_a_restored_window_goes_on_as_if_nothing_had_happened(
    history: list[Tagged], later: list[Tagged], policy: WindowPolicy
) -> None:
    window, restored = recorded(history, policy), create_window(policy)
    restored.restore(window.snapshot())
    for exchange, tagged in later:
        window.add_exchange(exchange, tagged)
        restored.add_exchange(exchange, tagged)
        assert (restored.messages(), restored.stats()) == (window.messages(), window.stats())


@by_rule
@given(histories, tool_loops, all_policies, all_policies, limits)
def test_rule_8_abort_after_a_change_of_policy_is_the_change_alone(
    history: list[Exchange], newest: Exchange, policy: WindowPolicy, changed: WindowPolicy, limit: int | None
) -> None:
    window, other = played(history, policy), played(history, policy)
    other.set_policy(changed)
    window.open(newest[0].content)
    for message in newest[1:-1]:
        window.add(message)
    window.set_turn_limit(limit)
    window.set_policy(changed)
    window.add(newest[-1])
    window.abort()
    assert (window.messages(), window.stats()) == (other.messages(), other.stats())


@by_rule
@given(histories, stubbing, texts)
def test_rule_7_each_message_and_each_stub_is_counted_once(
    history: list[Exchange], policy: WindowPolicy, system: str
) -> None:
    window = create_window(policy)
    counter = window._counter
    assert isinstance(counter, LengthCounter)
    window.set_system_prompt(system)
    for _ in steps(window, history):
        window.set_system_prompt(system)
        window.messages()
        window.stats()
    shortened = sum(
        written != whole
        for exchange in history
        for written, whole in zip(stub_results(list(exchange)), exchange, strict=True)
    )
    assert counter.asked == sum(len(exchange) for exchange in history) + bool(system) + shortened


@by_rule
@given(histories, tool_loops, all_policies)
def test_rule_9_of_a_tool_loop_only_results_of_older_rounds_are_replaced_the_oldest_first(
    history: list[Exchange], newest: Exchange, policy: WindowPolicy
) -> None:
    window = played(history, policy)
    window.open(newest[0].content)
    for written, message in enumerate(newest[1:], start=2):
        window.add(message)
        whole, sent = newest[:written], window.messages()[-written:]
        stubs = stub_results(list(whole))
        (*_, newest_round) = [0, *round_places(list(whole))]
        replaced = [place for place in range(written) if said(sent)[place] != said(whole)[place]]
        may_be = [place for place in range(newest_round) if stubs[place] != whole[place]]
        assert replaced == may_be[: len(replaced)]
        assert [sent[place].content for place in replaced] == [stubs[place].content for place in replaced]


@by_rule
@given(histories, tool_loops, all_policies)
def test_rule_9_no_result_is_replaced_while_there_is_room(
    history: list[Exchange], newest: Exchange, policy: WindowPolicy
) -> None:
    window = played(history, policy)
    room = policy.history_tokens - window.stats().current_tokens
    window.open(newest[0].content)
    fitting = [cost(newest[:written]) <= room for written in range(2, len(newest) + 1)]
    for message in newest[1 : 1 + sum(fitting)]:
        window.add(message)
    written = 1 + sum(fitting)
    assert said(window.messages()[-written:]) == said(newest[:written])


@by_rule
@given(histories, tool_loops, all_policies)
def test_rule_9_closed_exchanges_go_only_when_all_older_rounds_are_stubs(
    history: list[Exchange], newest: Exchange, policy: WindowPolicy
) -> None:
    window = played(history, policy)
    window.open(newest[0].content)
    for written, message in enumerate(newest[1:], start=2):
        evicted = window.stats().evicted_exchanges
        window.add(message)
        (*_, newest_round) = [0, *round_places(list(newest[:written]))]
        older = window.messages()[-written:][:newest_round]
        stubs = stub_results(list(newest[:newest_round]))
        assert window.stats().evicted_exchanges == evicted or said(older) == said(tuple(stubs))


@by_rule
@given(tagged_histories, tool_loops, all_policies, st.data())
def test_rule_9_before_a_request_the_window_fits_or_has_nothing_left_to_cut(
    history: list[Tagged], newest: Exchange, policy: WindowPolicy, data: st.DataObject
) -> None:
    window = recorded(history, policy)
    window.open(newest[0].content)
    for written, message in enumerate(newest[1:], start=2):
        window.add(message)
        limit = data.draw(limits)
        window.set_turn_limit(limit)
        sent = window.messages()[-written:]
        (*_, newest_round) = [0, *round_places(list(sent))]
        results = [message for message in sent[newest_round:] if message.role == Role.TOOL]
        in_force = max(1, policy.history_tokens if limit is None else min(limit, policy.history_tokens))
        assert window.stats().over_budget == (cost(window.messages()) > in_force)
        assert not window.stats().over_budget or (
            window.stats().exchange_count == 1 and all(cost((result,)) <= 100 for result in results)
        )


@by_rule
@given(tool_loops, all_policies, st.data())
def test_rule_9_every_request_of_a_tool_loop_is_one_that_a_provider_accepts(
    newest: Exchange, policy: WindowPolicy, data: st.DataObject
) -> None:
    window = create_window(policy)
    window.open(newest[0].content)
    unanswered = 0
    for message in newest[1:]:
        window.add(message)
        window.set_turn_limit(data.draw(limits))
        unanswered += len(message.tool_calls) - (message.role == Role.TOOL)
        assert bool(defects(window.messages())) == bool(unanswered)


@by_rule
@given(tool_loops, all_policies, all_policies, st.data())
def test_rule_10_a_limit_leaves_the_policy_and_ends_with_the_turn(
    newest: Exchange, policy: WindowPolicy, changed: WindowPolicy, data: st.DataObject
) -> None:
    window = create_window(policy)
    window.open(newest[0].content)
    window.set_turn_limit(data.draw(limits))
    assert window.policy == policy
    window.set_policy(changed)
    window.set_turn_limit(data.draw(limits))
    assert window.policy == changed
    window.close()
    assert window.stats().over_budget == (cost(window.messages()) > changed.history_tokens)
