"""The server of an account: the models that it listed last, which are stored, and whether it is away."""

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from itertools import islice

from homeassistant.core import callback

from ..providers import ListedModel, repair_surrogates
from ..window import is_count

# The limits of the stored list: ten times the models of a router, and names that a person can tell apart.
_MOST_MODELS = 5000
_LONGEST_ID = 255


class ServerCache:
    """The models that a server listed last, with their limits; used while it is away. Outlives a reload.

    `is_away`: whether it was logged that the server does not respond. `unanswered_since`: when the first question found
    it away since it last responded, in seconds on the event loop's clock, or None. `answered_at`: when it last answered
    a turn since the start, or None. `save_soon` is called after each change of the list.
    """

    def __init__(self) -> None:
        self.models: tuple[ListedModel, ...] = ()
        self.is_away = False
        self.unanswered_since: float | None = None
        self.answered_at: datetime | None = None
        self.save_soon: Callable[[], None] = lambda: None

    def restore(self, stored: object) -> None:
        """Take the stored list, without invalid entries, unless the server has listed its models by now."""
        self.models = self.models or tuple(islice(_valid_models(stored), _MOST_MODELS))

    def as_list(self) -> list[list[str | int | None]]:
        """Return the list of models for the store."""
        return [[model.id, model.context_tokens, model.output_tokens] for model in self.models]

    @callback
    def update(self, models: Sequence[ListedModel]) -> None:
        """Store the server's current list, without names that no file can hold: with a surrogate half."""
        storable = (each for each in models if len(each.id) <= _LONGEST_ID and repair_surrogates(each.id) == each.id)
        self.models = tuple(islice(storable, _MOST_MODELS))
        self.save_soon()

    @callback
    def forget(self) -> None:
        """Forget the server: the account has another one now."""
        self.is_away, self.unanswered_since, self.answered_at = False, None, None
        self.update(())


def _valid_models(stored: object) -> Iterator[ListedModel]:
    for model in stored if isinstance(stored, list) else ():
        match model:
            case [str(name), context, output] if _is_limit(context) and _is_limit(output):
                yield ListedModel(name, context, output)


def _is_limit(value: object) -> bool:
    return value is None or is_count(value, 1)
