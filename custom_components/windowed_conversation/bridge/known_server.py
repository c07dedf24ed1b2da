"""What is known of an account's server: the models that it listed last, kept on disk, and whether it is away."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import islice
import logging

from homeassistant.core import HomeAssistant, callback
from homeassistant.exceptions import HomeAssistantError
from homeassistant.helpers.json import json_bytes

from ..const import DOMAIN
from ..providers import ListedModel, whole
from ..window import is_figure
from .timely_store import StoreUnavailable, TimelyStore

_LOGGER = logging.getLogger(__name__)

_VERSION = 1

# What the file holds at most: ten times what a router lists, and the names that a person can tell apart.
_MOST_MODELS = 5000
_LONGEST_ID = 255

_MODELS = "models"


class KnownServer:
    """The models that a server listed last, with their limits, for when it is away. Outlives a reload.

    `is_away`: whether it was logged that the server does not respond. `unanswered_since`: when the first question found
    it away since it last responded, in seconds on the event loop's clock, or None. `answered_at`: when it last answered
    a turn since the start, or None.
    """

    def __init__(self, hass: HomeAssistant, entry_id: str) -> None:
        self.models: tuple[ListedModel, ...] = ()
        self.is_away = False
        self.unanswered_since: float | None = None
        self.answered_at: datetime | None = None
        key = f"{DOMAIN}.models.{entry_id}"
        self._file = TimelyStore(hass, _VERSION, key, state=lambda: self.models, encode=_encoded)

    async def async_load(self) -> None:
        """Load what was stored before the restart. A damaged file is ignored and overwritten."""
        try:
            self.models = tuple(islice(_remembered(await self._file.async_load()), _MOST_MODELS))
            self._file.is_on_disk()
        except StoreUnavailable as err:
            _LOGGER.warning("%s: the list of models is not kept", err)
        except (HomeAssistantError, NotImplementedError, ValueError) as err:
            _LOGGER.warning("The list of models cannot be read and is ignored: %s", type(err).__name__)

    @callback
    def take_in(self, models: Sequence[ListedModel]) -> None:
        """Store the server's current list."""
        self.models = tuple(islice(filter(_is_kept, models), _MOST_MODELS))
        self._file.save_soon()

    @callback
    def forget(self) -> None:
        """Forget the server: the account has another one now."""
        self.is_away, self.unanswered_since, self.answered_at = False, None, None
        self.take_in(())

    async def async_save(self) -> None:
        """Write what has changed; returns when it is on disk."""
        await self._file.async_save()

    async def async_remove(self) -> None:
        """Remove the file."""
        await self._file.async_remove()


def _is_kept(model: ListedModel) -> bool:
    """Return whether a model's name can be stored: no file can hold a surrogate half."""
    return len(model.id) <= _LONGEST_ID and whole(model.id) == model.id


def _encoded(models: tuple[ListedModel, ...]) -> bytes:
    return json_bytes({_MODELS: [[model.id, model.context_tokens, model.output_tokens] for model in models]})


def _remembered(stored: object) -> Iterator[ListedModel]:
    """Yield the models in a file, without invalid ones."""
    models = stored.get(_MODELS) if isinstance(stored, dict) else None
    for model in models if isinstance(models, list) else ():
        match model:
            case [str(name), context, output] if _is_limit(context) and _is_limit(output):
                yield ListedModel(name, context, output)


def _is_limit(value: object) -> bool:
    return value is None or is_figure(value, 1)


async def async_load_server(hass: HomeAssistant, entry_id: str) -> KnownServer:
    """Return what is known of an account's server, read from its file."""
    known = KnownServer(hass, entry_id)
    await known.async_load()
    return known
