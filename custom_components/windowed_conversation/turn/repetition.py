"""Loops of a model: repeated calls of one turn that give the same results."""

from collections.abc import Mapping
import json

from ..window import ToolCall

# The note before a result that the model has seen before: after it, it would be cut off a long one. It is short, so
# that the stub which is left of the result still has some of that.
REPEATED = "[Same call, same result as before: do not repeat it.]"

# The model gets a note after this many equal calls with equal results, in a row or as parts of a pattern.
_CALLS_BEFORE_NOTE = 3
_PATTERNS_BEFORE_NOTE = 2
_PATTERN_LENGTHS = (2, 3)

type _Entry = tuple[str, str]


class Repetition:
    """The calls of one turn and their results, round by round. Equal calls of a round count once.

    A call is repeated if an equal one gave an equal result and nothing else that changes the home ran in between.
    Patterns of two and three calls are looked for among calls of one kind: those that only read, or those that change.
    """

    def __init__(self) -> None:
        # Whether a loop continued after the model was told about it.
        self.goes_on = False
        self._round = set[str]()
        # By call: its newest result, and how often that has come.
        self._counts = dict[str, tuple[str, int]]()
        # The newest calls of one kind, and for each length of a pattern how many calls in a row were as it says.
        self._run: list[_Entry] = []
        self._run_reads = False
        self._matches = dict.fromkeys(_PATTERN_LENGTHS, 0)

    def begin_round(self) -> None:
        """Begin with the calls of the next answer."""
        self._round.clear()

    def add(self, call: ToolCall, result: str, *, read_only: bool) -> bool:
        """Add a call with its result. Return whether to tell the model that it repeats itself."""
        called = f"{call.name} {_json(call.arguments)}"
        if called in self._round:
            return False
        self._round.add(called)
        times = self._times((called, result), read_only=read_only)
        patterns = self._patterns((called, result), read_only=read_only)
        self.goes_on = self.goes_on or times > _CALLS_BEFORE_NOTE or patterns > _PATTERNS_BEFORE_NOTE
        return times >= _CALLS_BEFORE_NOTE or patterns >= _PATTERNS_BEFORE_NOTE

    def _times(self, entry: _Entry, *, read_only: bool) -> int:
        called, result = entry
        before, times = self._counts.get(called, ("", 0))
        if not read_only:
            self._counts.clear()
        times = times + 1 if before == result else 1
        self._counts[called] = result, times
        return times

    def _patterns(self, entry: _Entry, *, read_only: bool) -> int:
        """Return the number of times in a row that a pattern ending with this call has occurred."""
        if read_only != self._run_reads:
            self._run.clear()
            self._run_reads = read_only
            self._matches = dict.fromkeys(_PATTERN_LENGTHS, 0)
        for length in _PATTERN_LENGTHS:
            is_match = len(self._run) >= length and self._run[-length] == entry
            self._matches[length] = self._matches[length] + 1 if is_match else 0
        self._run.append(entry)
        repeats = (1 + matched // length for length, matched in self._matches.items() if matched % length == 0)
        return max(repeats, default=0)


def _json(arguments: Mapping[str, object]) -> str:
    return json.dumps(dict(arguments), sort_keys=True, default=str)
