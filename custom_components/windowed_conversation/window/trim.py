"""What a trim changes: results of the open exchange become stubs first, then those of closed ones, which then go."""

from typing import NamedTuple

from .contents import Contents
from .exchange import Exchange
from .policy import WindowPolicy
from .rounds import cut_newest_round, stub_older_rounds
from .tokens import TokenCounter
from .tool_results import stubbed


class Trim(NamedTuple):
    """What a trim has changed: `whole` are exchanges as they were before they got stubs, `gone` is still to be removed.

    A trim of the open exchange alone has neither.
    """

    whole: list[Exchange]
    gone: list[Exchange]


def make_room(contents: Contents, policy: WindowPolicy, newest: int, counter: TokenCounter) -> Trim | None:
    """Trim to the policy in force, but for the closed exchange of the number `newest`; None if nothing changes."""
    shortened = _stub_older_rounds(contents, policy, counter)
    if contents.tokens <= policy.history_tokens:
        return Trim([], []) if shortened else None
    whole = _stub_old_results(contents, policy, newest, counter)
    gone = contents.history.to_evict(contents.tokens, policy, newest)
    return Trim(whole, gone) if shortened or whole or gone else None


def cut_to_fit(contents: Contents, policy: WindowPolicy, counter: TokenCounter) -> bool:
    """Cut the newest results of the open exchange to what the policy in force leaves; returns whether any was."""
    opened = contents.opened
    if opened is None or contents.tokens <= policy.history_tokens:
        return False
    cut = cut_newest_round(opened, policy.history_tokens - contents.history.tokens, counter)
    if cut:
        contents.rewrite(opened.messages)
    return cut


def _stub_older_rounds(contents: Contents, policy: WindowPolicy, counter: TokenCounter) -> bool:
    opened = contents.opened
    if opened is None:
        return False
    shortened = stub_older_rounds(opened, policy.rounds_low_water(contents.history.tokens), counter)
    if shortened:
        contents.rewrite(opened.messages)
    return shortened


def _stub_old_results(contents: Contents, policy: WindowPolicy, newest: int, counter: TokenCounter) -> list[Exchange]:
    """Replace the results of closed exchanges that the policy no longer keeps; returns these as they were."""
    if policy.tool_results == "keep":
        return []
    opened = contents.opened
    kept = (policy.max_tool_turns or 0) - (opened is not None and opened.has_results)
    whole = contents.history.to_stub(max(0, kept), newest)
    if whole:
        contents.replace([stubbed(exchange, counter) for exchange in whole])
    return whole
