"""The rules of the window as plainly as they read: everything is counted again each time, nothing is cached."""

from copy import copy

from custom_components.windowed_conversation.window import Message, WindowPolicy

from .histories import cost


def after_trim(exchanges: list[list[Message]], policy: WindowPolicy) -> list[list[Message]]:
    """Return the exchanges that a policy leaves of these."""
    kept = list(exchanges)
    if _cost(kept) > policy.history_tokens:
        while _cost(kept) > (1 - policy.trim_share) * policy.history_tokens and len(kept) > 1:
            kept.pop(0)
    return kept


def _cost(exchanges: list[list[Message]]) -> int:
    return cost(tuple(message for exchange in exchanges for message in exchange))


class PlainWindow:
    """What a window has to be equal to."""

    def __init__(self, policy: WindowPolicy) -> None:
        self.policy = policy
        self.system = ""
        self.exchanges: list[list[Message]] = []
        self.tags: list[set[str]] = []
        self.evicted = [0, 0, 0, 0]
        self.before: PlainWindow | None = None

    def open(self, message: Message, tags: frozenset[str]) -> None:
        self.before = copy(self)
        self.before.exchanges = [list(exchange) for exchange in self.exchanges]
        self.before.tags = [set(tags) for tags in self.tags]
        self.exchanges.append([])
        self.tags.append(set())
        self.add(message)
        self.tag(tags)

    def add(self, message: Message) -> None:
        self.exchanges[-1].append(message)
        automatic = {"user": {"input"}, "assistant": {"output"}, "tool": {"tool_call"}}[message.role]
        self.tag(frozenset(automatic | ({"tool_call"} if message.tool_calls else set())))
        self.trim()

    def tag(self, tags: frozenset[str]) -> None:
        self.tags[-1] |= tags

    def close(self) -> None:
        self.before = None

    def abort(self) -> None:
        before, policy = self.before, self.policy
        assert before is not None
        self.__dict__.update(before.__dict__)
        self.set_policy(policy)

    def set_policy(self, policy: WindowPolicy) -> None:
        self.policy = policy
        self.trim()

    def trim(self) -> None:
        kept = after_trim(self.exchanges, self.policy)
        gone = self.exchanges[: len(self.exchanges) - len(kept)]
        amounts = (len(gone), sum(map(len, gone)), _cost(gone), bool(gone))
        self.evicted = [total + amount for total, amount in zip(self.evicted, amounts, strict=True)]
        self.tags = self.tags[len(gone) :]
        self.exchanges = kept

    def messages(self) -> tuple[Message, ...]:
        system = [Message.system(self.system)] if self.system else []
        return (*system, *(message for exchange in self.exchanges for message in exchange))

    def tag_distribution(self) -> dict[str, int]:
        return {tag: sum(tag in tags for tags in self.tags) for tag in set[str]().union(*self.tags)}
