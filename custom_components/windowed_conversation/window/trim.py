"""A trim: it stubs results of the open exchange, then results of closed exchanges, and evicts closed exchanges last."""

from .contents import Contents
from .exchange import Exchange
from .policy import WindowPolicy
from .rounds import cut_newest_round, stub_older_rounds
from .summary import evicted_passage, joined
from .tokens import TokenCounter
from .tool_results import stubbed


def trim(contents: Contents, policy: WindowPolicy, in_force: WindowPolicy, counter: TokenCounter) -> None:
    """Trim to the policy in force and keep the newest exchange. `policy` is the user's."""
    newest = 0 if contents.opened else contents.last_number
    shortened, whole, evicted = _stub_older_rounds(contents, in_force, counter), list[Exchange](), list[Exchange]()
    if contents.tokens > in_force.history_tokens:
        whole = _stub_old_results(contents, in_force, newest, counter)
        evicted = contents.history.to_evict(contents.tokens, in_force, newest)
    if policy.summarize and evicted:
        passage = evicted_passage(contents.state.system, (*contents.history, *whole), evicted)
        contents.hold(joined(contents.state.unsummarized, passage, policy.history_tokens))
    if shortened or whole or evicted:
        contents.evict(evicted)


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
