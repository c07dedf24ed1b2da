"""Learned figures of an account's models: factors for the tokens of their texts, and context sizes."""

from collections.abc import Callable, Collection
import logging
from typing import Any

from homeassistant.core import callback

from ..providers import Request, Usage
from ..turn.model_size import ModelSize
from ..turn.reasoning import Reasoning
from ..window import CalibratedCounter, Calibration, Calibrator, estimate_request
from .exact_counting import ExactCounter

_LOGGER = logging.getLogger(__name__)

# The greatest number of models of an account, each once for every counter.
_MAX_MODELS = 100

# The stored keys: factors on the estimate, and by encoding factors on exact counts.
_MODELS = "models"
_EXACT = "exact"
_LIMITS = "limits"

# A model and the encoding that it was counted with, or None for the estimate.
type _Key = tuple[str, str | None]


class ModelCalibrations:
    """The calibration of each model of one account, and the counters of its agents. Outlives a reload."""

    def __init__(self) -> None:
        # Called after each change.
        self.save_soon: Callable[[], None] = lambda: None
        # Least recently billed first.
        self._calibrators: dict[_Key, Calibrator] = {}
        self._sizes: dict[str, ModelSize] = {}
        # Not stored: the first answers after a restart show it.
        self._reasoning: dict[str, Reasoning] = {}
        self._counters: dict[str, CalibratedCounter] = {}

    def restore(self, stored: Any) -> None:
        """Continue from the value that `as_dict` returned before the restart. An unreadable one is ignored."""
        if stored is None:
            return
        try:
            calibrators, sizes = _calibrators(stored), self._stored_sizes(stored.get(_LIMITS))
        except (AttributeError, LookupError, TypeError, ValueError) as err:
            kind = type(err).__name__
            _LOGGER.warning("What was learned of the models' tokens cannot be read and is ignored: %s", kind)
            return
        # calibrations in use stay
        self._calibrators, self._sizes = calibrators | self._calibrators, sizes | self._sizes

    @callback
    def counter(self, agent_id: str, model: str, exact: ExactCounter | None = None) -> CalibratedCounter:
        """Return the agent's counter, the same for each of its windows. It counts by the agent's current model.

        `exact` is the counter that it calibrates, or None for the estimate.
        """
        calibrator = self._calibrators.setdefault(_key(model, exact), Calibrator())
        counter = self._counters.setdefault(agent_id, CalibratedCounter(calibrator))
        counter.count_by(calibrator, exact)
        return counter

    @callback
    def learn(self, request: Request, usage: Usage, exact: ExactCounter | None = None) -> None:
        """Learn from the usage that a provider reports of a request, see `OnUsage`, against `exact` or the estimate.

        Ignores requests that forbid calls, because the server may then not read the tools.
        """
        if request.tools and not request.may_call:
            return
        schemas = (tool.text for tool in request.tools)
        key = _key(request.model, exact)
        self._calibrators[key] = calibrator = self._calibrators.pop(key, None) or Calibrator()
        sent = usage.input + usage.cleared
        if calibrator.learn(estimate_request(request.messages, schemas, exact), sent, usage.cached):
            self.save_soon()

    @callback
    def size(self, model: str) -> ModelSize:
        """Return the `ModelSize` of a model. All who ask the model share it."""
        return self._sizes.setdefault(model, ModelSize(self._on_change))

    @callback
    def reasoning(self, model: str) -> Reasoning:
        """Return the `Reasoning` of a model, which all who ask the model share."""
        return self._reasoning.setdefault(model, Reasoning())

    @callback
    def forget_sizes(self, models: Collection[str] | None = None) -> None:
        """Forget the learned sizes of these models, or of all, after the user has reconfigured them."""
        for model, size in self._sizes.items():
            if models is None or model in models:
                size.forget()

    def _stored_sizes(self, stored: object) -> dict[str, ModelSize]:
        sizes = stored.items() if isinstance(stored, dict) else ()
        return {str(model): ModelSize.from_dict(kept, self._on_change) for model, kept in sizes}

    def _on_change(self) -> None:
        self.save_soon()

    def as_dict(self) -> dict[str, Any]:
        """Return the learned figures by model: factors on the estimate and on exact counts, and sizes."""
        learned = {key: each.calibration for key, each in self._calibrators.items() if each.calibration.is_learned}
        models: dict[str | None, dict[str, Any]] = {None: {}}
        for model, encoding in list(learned)[-_MAX_MODELS:]:
            models.setdefault(encoding, {})[model] = learned[model, encoding].as_dict()
        sizes = {model: stored for model, size in self._sizes.items() if (stored := size.as_dict())}
        limits = {model: sizes[model] for model in list(sizes)[-_MAX_MODELS:]}
        return {_MODELS: models.pop(None), _EXACT: models, _LIMITS: limits}


def _key(model: str, exact: ExactCounter | None) -> _Key:
    return model, None if exact is None else exact.encoding


def _calibrators(stored: dict[str, Any]) -> dict[_Key, Calibrator]:
    """Return the stored calibrators. Raises an error if it is malformed."""
    return {
        (str(model), encoding): Calibrator(Calibration.from_dict(factors))
        for encoding, models in [(None, stored[_MODELS]), *stored.get(_EXACT, {}).items()]
        for model, factors in models.items()
    }
