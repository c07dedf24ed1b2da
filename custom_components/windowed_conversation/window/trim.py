"""A trim: it stubs results of the open exchange, then results of closed exchanges, and evicts closed exchanges last.

The first stubs of closed exchanges also remove recalled lines; if that frees enough, nothing is evicted. Evicting newer
states of the home also removes the older ones from the exchanges that stay.
"""

from collections.abc import Iterable, Sequence

from .contents import Contents
from .exchange import Exchange
from .history import History
from .policy import WindowPolicy
from .recalled import without_recalled
from .rounds import cut_newest_round, stub_older_rounds
from .summary import evicted_passage, joined
from .tokens import TokenCounter
from .told import outdated, tells, without_told
from .tool_results import stubbed


def trim(contents: Contents, policy: WindowPolicy, in_force: WindowPolicy, counter: TokenCounter) -> None:
    """Trim to the policy in force and keep the newest exchange. `policy` is the user's."""
    newest = 0 if contents.opened else contents.last_number
    shortened, whole, evicted = _stub_older_rounds(contents, in_force, counter), list[Exchange](), list[Exchange]()
    if contents.tokens > in_force.history_tokens:
        recalled = _take_out_recalled(contents, newest, counter)
        # as they were sent; if an exchange is in both lists, the later one counts
        whole = [*_stub_old_results(contents, in_force, newest, counter), *recalled]
        evicted = _to_evict(contents.history, contents.tokens, in_force, newest, recalled)
        whole = [*take_out_outdated(contents, evicted), *whole]
    if policy.summarize and evicted:
        passage = evicted_passage(contents.state.system, (*contents.history, *whole), evicted)
        contents.hold(joined(contents.state.unsummarized, passage, policy.history_tokens))
    if shortened or whole or evicted:
        contents.evict(evicted)


def staying(contents: Contents, tokens: int, in_force: WindowPolicy, counter: TokenCounter) -> tuple[Exchange, ...]:
    """Return the closed exchanges that certainly stay if this many tokens are added, as they would be then."""
    if contents.tokens + tokens <= in_force.history_tokens:
        return tuple(contents.history)
    recalled = contents.history.with_recalled(0)
    shorter = {exchange.number: without_recalled(exchange, counter) for exchange in recalled}
    history = History()
    for exchange in contents.history:
        history.append(shorter.get(exchange.number, exchange))
    total = contents.tokens - contents.history.tokens + history.tokens + tokens
    history.remove(_to_evict(history, total, in_force, 0, recalled))
    return tuple(history)


def take_out_outdated(contents: Contents, evicted: Iterable[Exchange]) -> list[Exchange]:
    """Remove states of the home that `evicted` had replaced from closed exchanges. Return these as they were."""
    older = outdated(contents.history, evicted)
    if older:
        contents.replace([without_told(exchange) for exchange in older])
    return older


def take_out_told(contents: Contents) -> None:
    """Remove everything about the home from closed exchanges."""
    telling = [exchange for exchange in contents.history if tells(exchange)]
    if telling:
        contents.replace([without_told(exchange) for exchange in telling])


def cut_to_fit(contents: Contents, policy: WindowPolicy, counter: TokenCounter) -> None:
    """Cut the newest results of the open exchange to what the policy in force leaves. A cut counts as a trim."""
    opened, room = contents.opened, policy.history_tokens - contents.history.tokens
    if opened and opened.tokens > room and cut_newest_round(opened, room, counter):
        contents.rewrite(opened.messages)
        contents.evict(())


def _stub_older_rounds(contents: Contents, policy: WindowPolicy, counter: TokenCounter) -> bool:
    opened = contents.opened
    if opened is None:
        return False
    shortened = stub_older_rounds(opened, policy.rounds_low_water(contents.history.tokens), counter)
    if shortened:
        contents.rewrite(opened.messages)
    return shortened


def _to_evict(
    history: History, tokens: int, policy: WindowPolicy, newest: int, recalled: Sequence[Exchange]
) -> list[Exchange]:
    """Return the exchanges to evict from a window of this many tokens, after `recalled` ones lost their lines."""
    if recalled and tokens <= policy.high_water:
        return []
    return history.to_evict(tokens, policy, newest)


def _take_out_recalled(contents: Contents, newest: int, counter: TokenCounter) -> list[Exchange]:
    """Remove recalled lines from closed exchanges. Return these exchanges as they were."""
    recalled = contents.history.with_recalled(newest)
    if recalled:
        contents.replace([without_recalled(exchange, counter) for exchange in recalled])
    return recalled


def _stub_old_results(contents: Contents, policy: WindowPolicy, newest: int, counter: TokenCounter) -> list[Exchange]:
    """Replace the results of closed exchanges that the policy no longer keeps. Return these exchanges as they were."""
    if policy.tool_results == "keep":
        return []
    opened = contents.opened
    kept = (policy.max_tool_turns or 0) - (opened is not None and opened.has_results)
    whole = contents.history.to_stub(max(0, kept), newest)
    if whole:
        contents.replace([stubbed(exchange, counter) for exchange in whole])
    return whole
