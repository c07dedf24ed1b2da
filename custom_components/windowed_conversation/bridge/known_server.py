"""The server of an account: the models that it listed last, kept on disk, and whether it is away."""

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from itertools import islice

from homeassistant.core import callback

from ..providers import ListedModel, repair_surrogates
from ..window import is_count

# What is stored at most: ten times what a router lists, and the names that a person can tell apart.
_MOST_MODELS = 5000
_LONGEST_ID = 255


class ServerCache:
    """The models that a server listed last, with their limits, for when it is away. Outlives a reload.

    `is_away`: whether it was logged that the server does not respond. `unanswered_since`: when the first question found
    it away since it last responded, in seconds on the event loop's clock, or None. `answered_at`: when it last answered
    a turn since the start, or None.
    """

    def __init__(self) -> None:
        """Begin with nothing known."""
        self.models: tuple[ListedModel, ...] = ()
        self.is_away = False
        self.unanswered_since: float | None = None
        self.answered_at: datetime | None = None
        # Called after each change of the list.
        self.save_soon: Callable[[], None] = lambda: None

    def restore(self, stored: object) -> None:
        """Take in the list that `as_list` returned before the restart, without invalid entries, unless there is one."""
        self.models = self.models or tuple(islice(_remembered(stored), _MOST_MODELS))

    def as_list(self) -> list[list[str | int | None]]:
        """Return the list of models as JSON has it."""
        return [[model.id, model.context_tokens, model.output_tokens] for model in self.models]

    @callback
    def take_in(self, models: Sequence[ListedModel]) -> None:
        """Store the server's current list."""
        self.models = tuple(islice(filter(_is_kept, models), _MOST_MODELS))
        self.save_soon()

    @callback
    def forget(self) -> None:
        """Forget the server: the account has another one now."""
        self.is_away, self.unanswered_since, self.answered_at = False, None, None
        self.take_in(())


def _is_kept(model: ListedModel) -> bool:
    """Return whether a model's name can be stored: no file can hold a surrogate half."""
    return len(model.id) <= _LONGEST_ID and repair_surrogates(model.id) == model.id


def _remembered(stored: object) -> Iterator[ListedModel]:
    """Yield the models in a stored list, without invalid ones."""
    for model in stored if isinstance(stored, list) else ():
        match model:
            case [str(name), context, output] if _is_limit(context) and _is_limit(output):
                yield ListedModel(name, context, output)


def _is_limit(value: object) -> bool:
    return value is None or is_count(value, 1)
