"""A simple reference implementation of the window's rules: everything is recounted each time, nothing is cached."""

from copy import copy
from dataclasses import replace
from itertools import pairwise

from custom_components.windowed_conversation.window import Message, WindowPolicy

from .histories import cost


def after_trim(
    exchanges: list[list[Message]], tags: list[set[str]], policy: WindowPolicy, *, due: bool = False
) -> list[int]:
    """Return the indexes of the exchanges that remain after a trim, if it is `due` or the budget is exceeded."""
    kept = list(range(len(exchanges)))
    if due or _cost(exchanges) > policy.history_tokens:
        low_water = (1 - policy.effective_trim_share) * policy.history_tokens
        for going, limit in (("ephemeral", low_water), ("ordinary", low_water), ("important", policy.history_tokens)):
            for place in range(len(exchanges) - 1):
                if goes_with(tags[place]) == going and _cost([exchanges[left] for left in kept]) > limit:
                    kept.remove(place)
    return kept


def stub_results(exchange: list[Message]) -> list[Message]:
    """Return an exchange in which stubs replace the tool results that are longer than their stub."""
    return [_stub(message) if message.role == "tool" else message for message in exchange]


def round_places(exchange: list[Message]) -> list[int]:
    """Return the indexes of the messages at which the tool rounds of an exchange begin."""
    return [place for place, message in enumerate(exchange) if message.tool_calls]


def _stub(result: Message) -> Message:
    """Return the stub of a result of "turn_on" in the kitchen, whose text is of x, perhaps with the mark of a cut."""
    words = result.content.replace("\n", " ")
    words = words if len(words) <= 100 else words[:100] + "…"
    size = f"{cost((result,))} tokens, beginning with {words}"
    stub = replace(result, content=f'[Shortened result of turn_on {{"area":"kitchen"}}: {size}]')
    is_one = result.content.startswith("[Shortened")
    return result if is_one or len(stub.content) >= len(result.content) else stub


def _has_results(exchange: list[Message]) -> bool:
    return any(message.role == "tool" for message in exchange)


def goes_with(tags: set[str]) -> str:
    """Return the group of exchanges with which an exchange with these tags is evicted."""
    return next((tag for tag in ("important", "ephemeral") if tag in tags), "ordinary")


def _cost(exchanges: list[list[Message]]) -> int:
    return cost(tuple(message for exchange in exchanges for message in exchange))


class PlainWindow:
    """The reference implementation to which a window must be equal."""

    def __init__(self, policy: WindowPolicy) -> None:
        self.policy = policy
        self.system = ""
        self.exchanges: list[list[Message]] = []
        self.tags: list[set[str]] = []
        self.numbers: list[int] = []
        self.whole: list[bool] = []
        self.evicted = [0, 0, 0, 0]
        self.closed = 0
        self.summary = 0
        self.before: PlainWindow | None = None
        self.limit: int | None = None

    def open(self, message: Message, tags: frozenset[str]) -> None:
        self.before = copy(self)
        self.before.exchanges = [list(exchange) for exchange in self.exchanges]
        self.before.tags = [set(tags) for tags in self.tags]
        self.before.numbers = list(self.numbers)
        self.before.whole = list(self.whole)
        self.exchanges.append([])
        self.tags.append(set())
        self.numbers.append(self.closed + 1)
        self.whole.append(False)
        self.add(message)
        self.tag(tags)

    def add(self, message: Message) -> None:
        self.exchanges[-1].append(message)
        automatic = {"user": {"input"}, "assistant": {"output"}, "tool": {"tool_call"}}[message.role]
        self.tag(frozenset(automatic | ({"tool_call"} if message.tool_calls else set())))
        self.whole[-1] = _has_results(self.exchanges[-1])
        self.trim()

    def tag(self, tags: frozenset[str]) -> None:
        self.tags[-1] |= tags

    @property
    def in_force(self) -> WindowPolicy:
        if self.limit is None or self.limit >= self.policy.history_tokens:
            return self.policy
        # a temporary limit frees a smaller share than a policy's own budget, unless the user has chosen the share
        share = (
            min(self.policy.effective_trim_share, 0.15) if self.policy.trim_share is None else self.policy.trim_share
        )
        return replace(self.policy, history_tokens=max(1, self.limit), trim_share=share)

    def over(self) -> int:
        return _cost(self.exchanges) - self.in_force.history_tokens

    def set_limit(self, limit: int | None) -> tuple[int, list[Message]]:
        """Return the maximum tokens for each result of the newest round, and the results to be cut to that length."""
        self.limit = limit
        self.trim()
        newest = self.exchanges[-1][max([0, *round_places(self.exchanges[-1])]) :]
        results = [message for message in newest if message.role == "tool"]
        over = self.over()
        if over <= 0:
            return 0, []
        costs = [cost((result,)) for result in results]
        room = sum(costs) - over
        most = max([100, *(most for most in range(room + 1) if sum(min(most, each) for each in costs) <= room)])
        return most, [result for result, each in zip(results, costs, strict=True) if each > most]

    def cut(self, cuts: list[Message]) -> None:
        for cut in cuts:
            place = [message.tool_call_id for message in self.exchanges[-1]].index(cut.tool_call_id)
            self.exchanges[-1][place] = cut
        self.keep([*range(len(self.exchanges))], trims=bool(cuts))

    def close_incomplete(self, interrupted: list[Message]) -> None:
        for message in interrupted:
            self.add(message)
        self.tag(frozenset({"incomplete"}))
        self.close()

    def close(self) -> None:
        self.before = None
        self.closed += 1
        if self.policy.tool_results == "stub" and self.policy.max_tool_turns is None:
            self.stub(len(self.exchanges) - 1)
        self.limit = None

    def stub(self, index: int) -> None:
        self.exchanges[index] = stub_results(self.exchanges[index])
        self.whole[index] = False

    def abort(self) -> None:
        before, policy = self.before, self.policy
        assert before is not None
        self.__dict__.update(before.__dict__)
        self.set_policy(policy)

    def summarize(self, numbers: frozenset[int], summary: list[Message]) -> None:
        if numbers & {*self.numbers[:-1]}:
            going = numbers | {self.summary}
            newest = len(self.numbers) - 1
            self.keep([place for place in range(newest) if self.numbers[place] not in going] + [newest])
        if self.summary:
            self.tags[self.numbers.index(self.summary)] -= {"summary", "important"}
            self.tags[self.numbers.index(self.summary)] |= {"ephemeral"}
        self.summary = self.numbers[-1]
        self.closed += 1
        self.exchanges.insert(-1, summary)
        self.tags.insert(-1, {"input", "output", "summary", "important"})
        self.whole.insert(-1, False)
        self.numbers.append(self.closed)
        self.trim()

    def set_policy(self, policy: WindowPolicy) -> None:
        self.policy = policy
        self.trim()

    def trim(self) -> None:
        shortened = self.stub_older_rounds() if self.over() > 0 else False
        stubbed = self.stub_old_results() if self.over() > 0 else False
        kept = after_trim(self.exchanges, self.tags, self.in_force, due=stubbed)
        self.keep(kept, trims=shortened or stubbed or len(kept) < len(self.exchanges))

    def keep(self, kept: list[int], *, trims: bool = True) -> None:
        gone = [exchange for place, exchange in enumerate(self.exchanges) if place not in kept]
        amounts = (len(gone), sum(map(len, gone)), _cost(gone), trims)
        self.evicted = [total + amount for total, amount in zip(self.evicted, amounts, strict=True)]
        self.exchanges = [self.exchanges[place] for place in kept]
        self.tags = [self.tags[place] for place in kept]
        self.numbers = [self.numbers[place] for place in kept]
        self.whole = [self.whole[place] for place in kept]
        self.summary = self.summary if self.summary in self.numbers else 0

    def stub_older_rounds(self) -> bool:
        *closed, newest = self.exchanges
        room = self.in_force.history_tokens - _cost(closed)
        low_water = (1 - max(0.5, self.in_force.effective_trim_share)) * room
        before = list(newest)
        rounds = round_places(newest) if self.before else []
        kept = self.policy.max_tool_turns if self.policy.tool_results == "stub" else None
        outdated = rounds[:-kept] if kept else []
        for begin, end in pairwise(rounds):
            if cost(tuple(newest)) > low_water or begin in outdated:
                newest[begin:end] = stub_results(newest[begin:end])
        return newest != before

    def stub_old_results(self) -> bool:
        if self.policy.tool_results == "keep":
            return False
        is_changed, newest = False, len(self.exchanges) - 1
        left = self.policy.max_tool_turns or 0
        for place in reversed(range(len(self.exchanges))):
            exchange, rounds = self.exchanges[place], round_places(self.exchanges[place])
            is_open = self.before is not None and place == newest
            if not is_open and not self.whole[place]:
                continue
            kept = min(left, len(rounds))
            left -= kept
            if is_open or kept == len(rounds) or (place == newest and self.policy.max_tool_turns is None):
                continue
            end = rounds[-kept] if kept else len(exchange)
            self.exchanges[place] = stub_results(exchange[:end]) + exchange[end:]
            is_changed = is_changed or self.exchanges[place] != exchange or not kept
            self.whole[place] = kept > 0
        return is_changed

    def messages(self) -> tuple[Message, ...]:
        system = [Message.system(self.system)] if self.system else []
        return (*system, *(message for exchange in self.exchanges for message in exchange))

    def view(self, wanted: frozenset[str], match: str, excluded: frozenset[str]) -> tuple[Message, ...]:
        matches = {"any": any, "all": all}[match]
        closed = len(self.exchanges) - (self.before is not None)
        shown = [
            exchange
            for place, (exchange, tags) in enumerate(zip(self.exchanges, self.tags, strict=True))
            if place == closed
            or ((not wanted or matches(tag in tags for tag in wanted)) and not any(tag in tags for tag in excluded))
        ]
        system = [Message.system(self.system)] if self.system else []
        return (*system, *(message for exchange in shown for message in exchange))

    def count_tags(self) -> dict[str, int]:
        return {tag: sum(tag in tags for tags in self.tags) for tag in set[str]().union(*self.tags)}

    def protected_tokens(self) -> int:
        return _cost(
            [exchange for exchange, tags in zip(self.exchanges, self.tags, strict=True) if "important" in tags]
        )
