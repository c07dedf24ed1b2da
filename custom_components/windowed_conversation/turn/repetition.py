"""Detection of tool calls that a model repeats within a turn, alone or in a pattern."""

from dataclasses import dataclass, field
import json

from ..window import ToolCall

# The note for a result that the model has seen before. It precedes the result, because at the end it would be cut off
# if the result is long. It is short, so that a stub of the result still contains some of the result.
REPETITION_NOTE = "[Same call, same result as before: do not repeat it.]"

# The model gets the note after this many equal calls with equal results, in a row or as parts of a pattern.
_CALLS_BEFORE_NOTE = 3
_PATTERNS_BEFORE_NOTE = 2
_PATTERN_LENGTHS = (2, 3)

type _CallAndResult = tuple[str, str]


@dataclass(slots=True)
class RepetitionDetector:
    """Detects repetition among the calls of one turn, round by round. Equal calls of a round count once.

    A call is repeated if an equal call had an equal result and no other call that changes the home ran in between.
    Patterns of two and three calls are detected separately among read-only calls and among calls that change the home.
    `is_note_ignored` means that the model continued a loop after it got the note.
    """

    is_note_ignored: bool = False
    _round_calls: set[str] = field(default_factory=set)
    # For each call, its newest result, and how many times in a row it has returned that result.
    _results_by_call: dict[str, tuple[str, int]] = field(default_factory=dict)
    # The newest calls of one kind (read-only or not), and for each pattern length, how many consecutive calls have
    # matched the pattern.
    _recent_calls: list[_CallAndResult] = field(default_factory=list)
    _is_recent_read_only: bool = False
    _matches: dict[int, int] = field(default_factory=dict)

    def begin_round(self) -> None:
        """Begin a new round, for the calls of the next answer."""
        self._round_calls.clear()

    def add_call(self, call: ToolCall, result: str, *, read_only: bool) -> bool:
        """Add a call with its result. Return whether to add the note about repetition to the result."""
        called = f"{call.name} {json.dumps(dict(call.arguments), sort_keys=True, default=str)}"
        if called in self._round_calls:
            return False
        self._round_calls.add(called)
        before, times = self._results_by_call.get(called, ("", 0))
        times = times + 1 if before == result else 1
        if not read_only:
            self._results_by_call.clear()
        self._results_by_call[called] = result, times
        patterns = self._count_pattern_repeats((called, result), read_only=read_only)
        self.is_note_ignored = self.is_note_ignored or times > _CALLS_BEFORE_NOTE or patterns > _PATTERNS_BEFORE_NOTE
        return times >= _CALLS_BEFORE_NOTE or patterns >= _PATTERNS_BEFORE_NOTE

    def _count_pattern_repeats(self, entry: _CallAndResult, *, read_only: bool) -> int:
        """Return the number of times in a row that the pattern ending with this call has occurred."""
        if read_only != self._is_recent_read_only:
            self._recent_calls.clear()
            self._is_recent_read_only = read_only
            self._matches.clear()
        for length in _PATTERN_LENGTHS:
            is_match = len(self._recent_calls) >= length and self._recent_calls[-length] == entry
            self._matches[length] = self._matches.get(length, 0) + 1 if is_match else 0
        self._recent_calls.append(entry)
        repeats = [1 + matched // length for length, matched in self._matches.items() if matched % length == 0]
        return max(repeats, default=0)
