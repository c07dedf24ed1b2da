"""What was learned of an account's models, kept in Home Assistant's storage: a file for each account.

How it is learned is `window.calibration`'s business.
"""

import logging
from typing import Any

from homeassistant.core import HomeAssistant, callback
from homeassistant.exceptions import HomeAssistantError
from homeassistant.helpers.storage import Store
from homeassistant.util.hass_dict import HassKey

from ..const import DOMAIN
from ..providers.events import Request, Usage
from ..window.calibration import CalibratedCounter, Calibration, Calibrator, estimate_request
from ..window.tokens import tool_text

_LOGGER = logging.getLogger(__name__)

_VERSION = 1

# How long a change waits for the next one before it is written, in seconds.
_SAVE_DELAY = 120

# The greatest number of models that an account's file holds.
_MAX_MODELS = 100


class ModelCalibrations:
    """What is known of each model of one account, and the counters of its agents, which outlive a reload."""

    def __init__(self, hass: HomeAssistant, entry_id: str) -> None:
        self._store: Store[dict[str, Any]] = Store(hass, _VERSION, f"{DOMAIN}.calibration.{entry_id}")
        self._removed = False
        # In the order of their last report.
        self._calibrators: dict[str, Calibrator] = {}
        self._counters: dict[str, CalibratedCounter] = {}

    async def async_load(self) -> None:
        """Take in what an earlier run had learned. A file that is damaged is ignored, and written anew."""
        try:
            stored = await self._store.async_load()
            if stored is not None:
                self._calibrators = _calibrators(stored)
        except (HomeAssistantError, AttributeError, LookupError, NotImplementedError, TypeError, ValueError) as err:
            kind = type(err).__name__
            _LOGGER.warning("What was learned of the models' tokens cannot be read and is ignored: %s", kind)

    @callback
    def counter(self, agent_id: str, model: str) -> CalibratedCounter:
        """Return the agent's counter, which is the same for each of its windows and counts by its model of now."""
        calibrator = self._calibrators.setdefault(model, Calibrator())
        counter = self._counters.setdefault(agent_id, CalibratedCounter(calibrator))
        counter.calibrator = calibrator
        return counter

    @callback
    def learn(self, request: Request, usage: Usage) -> None:
        """Learn from what a provider reports of a request, see `OnUsage`."""
        schemas = (tool_text(tool.name, tool.description, tool.parameters) for tool in request.tools)
        calibrator = self._calibrators.pop(request.model, None) or Calibrator()
        self._calibrators[request.model] = calibrator
        learned = calibrator.learn(estimate_request(request.messages, schemas), usage.input, usage.cached)
        if learned and not self._removed:
            self._store.async_delay_save(self._as_dict, _SAVE_DELAY)

    async def async_remove(self) -> None:
        """Remove the file; a turn that is still under way does not bring it back."""
        self._removed = True
        await self._store.async_remove()

    def _as_dict(self) -> dict[str, Any]:
        known = {model: each.calibration for model, each in self._calibrators.items() if each.calibration.is_learned}
        return {"models": {model: known[model].as_dict() for model in list(known)[-_MAX_MODELS:]}}


def _calibrators(stored: dict[str, Any]) -> dict[str, Calibrator]:
    """Return what a file holds; raises where it is not of our form."""
    return {str(model): Calibrator(Calibration.remembered(each)) for model, each in stored["models"].items()}


_CALIBRATIONS: HassKey[dict[str, ModelCalibrations]] = HassKey(f"{DOMAIN}_calibrations")


async def async_calibrations(hass: HomeAssistant, entry_id: str) -> ModelCalibrations:
    """Return what is known of an account's models, read from its file the first time."""
    known = hass.data.setdefault(_CALIBRATIONS, {})
    if entry_id not in known:
        calibrations = ModelCalibrations(hass, entry_id)
        await calibrations.async_load()
        known[entry_id] = calibrations
    return known[entry_id]


async def async_remove_calibrations(hass: HomeAssistant, entry_id: str) -> None:
    """Forget what was learned of an account's models, in memory and on disk."""
    known = hass.data.setdefault(_CALIBRATIONS, {})
    await (known.pop(entry_id, None) or ModelCalibrations(hass, entry_id)).async_remove()
