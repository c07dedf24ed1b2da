"""A trim: it stubs results of the open exchange, then results of closed exchanges, and evicts closed exchanges last.

A tool round is an assistant message with calls and the results of these calls. The model has read a round's results
when the next round begins.
"""

from collections.abc import Iterable

from .contents import Contents
from .exchange import Exchange, OpenExchange
from .messages import Message, Role, ToolCall, with_content
from .policy import MIN_RESULT_TOKENS, WindowPolicy
from .summary import evicted_summary_input, join_summary_inputs
from .tokens import TokenCounter
from .tool_results import cut_content, stub_result, stub_results


def trim(contents: Contents, policy: WindowPolicy, in_force: WindowPolicy, counter: TokenCounter) -> None:
    """Trim to the policy in force and keep the newest exchange. `policy` is the user's."""
    newest = 0 if contents.opened else contents.last_number
    shortened, whole, evicted = _stub_older_rounds(contents, in_force, counter), list[Exchange](), list[Exchange]()
    if contents.tokens > in_force.history_tokens:
        whole = _stub_old_results(contents, in_force, newest, counter)
        evicted = contents.history.exchanges_to_evict(contents.tokens, in_force, newest)
    if policy.summarize and evicted:
        passage = evicted_summary_input(contents.state.system, (*contents.history, *whole), evicted)
        contents.set_pending(join_summary_inputs(contents.state.pending_summary, passage, policy.history_tokens))
    if shortened or whole or evicted:
        contents.evict(evicted)


def cut_to_fit(contents: Contents, exchange: OpenExchange, policy: WindowPolicy, counter: TokenCounter) -> None:
    """Cut the results of the newest round until the policy in force is met, or each costs at most 100 tokens.

    Small results stay whole. A cut counts as a trim.
    """
    room = policy.history_tokens - contents.history.tokens
    places = range(exchange.newest_round + 1, len(exchange.messages))
    results = {place: exchange.messages[place] for place in places if exchange.messages[place].role is Role.TOOL}
    tokens = [result.tokens or 0 for result in results.values()]
    most = max(_max_each(tokens, room - exchange.tokens + sum(tokens)), MIN_RESULT_TOKENS)
    cuts: dict[int, Message] = {}
    for place, result in results.items():
        if (result.tokens or 0) > most:
            content, cost = cut_content(exchange.originals.get(place, result), most, counter)
            if cost < (result.tokens or 0):
                cuts[place] = with_content(result, content, cost)
    if cuts:
        exchange.originals = {**{place: results[place] for place in cuts}, **exchange.originals}
        exchange.replace(cuts)
        contents.rewrite(exchange.messages)
        contents.evict(())


def _max_each(tokens: Iterable[int], room: int) -> int:
    """Return the largest size for each that lets all fit. Room that small ones leave is shared by the others."""
    larger = sorted(tokens)
    while larger and larger[0] * len(larger) <= room:
        room -= larger.pop(0)
    return room // max(1, len(larger))


def _stub_older_rounds(contents: Contents, policy: WindowPolicy, counter: TokenCounter) -> bool:
    """Replace results of the open exchange with stubs, oldest round first, down to the low water of its rounds.

    Keeps the newest round. Returns whether anything changed. Looks at each round only once, however often it is called.
    """
    exchange = contents.opened
    if exchange is None:
        return False
    stubs: dict[int, Message] = {}
    low_water = policy.rounds_low_water(contents.history.tokens)
    tokens, calls = exchange.tokens, dict[str | None, ToolCall]()
    place = exchange.stub_end
    while place < exchange.newest_round:
        message = exchange.messages[place]
        if message.tool_calls:
            if tokens <= low_water:
                break
            calls = {call.id: call for call in message.tool_calls}
        elif message.role is Role.TOOL:
            shorter = stub_result(message, calls[message.tool_call_id], counter, exchange.originals.get(place))
            if shorter is not message:
                stubs[place] = shorter
                tokens -= (message.tokens or 0) - (shorter.tokens or 0)
        place += 1
    exchange.stub_end = place
    if stubs:
        exchange.replace(stubs)
        contents.rewrite(exchange.messages)
    return bool(stubs)


def _stub_old_results(contents: Contents, policy: WindowPolicy, newest: int, counter: TokenCounter) -> list[Exchange]:
    """Replace the results of closed exchanges that the policy no longer keeps. Return these exchanges as they were."""
    if policy.tool_results == "keep":
        return []
    opened = contents.opened
    kept = (policy.max_tool_turns or 0) - (opened is not None and opened.has_results)
    whole = contents.history.exchanges_to_stub(max(0, kept), newest)
    if whole:
        contents.replace([stub_results(exchange, counter) for exchange in whole])
    return whole
