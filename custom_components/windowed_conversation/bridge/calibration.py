"""Token counting for an account's models: exact counters, and learned calibration factors and context sizes."""

from base64 import b64decode
from collections.abc import Callable, Collection
from functools import cache
from hashlib import sha256
import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

from homeassistant.core import HomeAssistant, callback

from ..providers import Request, Usage
from ..store import do_nothing
from ..turn.model import ReasoningDetector
from ..turn.model_size import ContextSizeTracker
from ..window import CalibratedCounter, Calibration, Calibrator, estimate_request

if TYPE_CHECKING:
    from tiktoken import Encoding

_LOGGER = logging.getLogger(__name__)

_VOCABULARY_FOLDER = Path(__file__).parent.parent / "vocabularies"
_VOCABULARY_FILE = "fb374d419588a4632f3f557e76b4b70aebbca790"
_ENCODING = "o200k_base"
# The hash of the vocabulary and the pattern that splits texts, as OpenAI publishes them: tiktoken_ext/openai_public.py
_VOCABULARY_SHA256 = "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"
_CONTRACTION = "(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
_PATTERN = "|".join(
    (
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+" + _CONTRACTION,
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*" + _CONTRACTION,
        r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    )
)

# The most stored calibrations of an account. A model that was counted with two counters has two.
_MAX_MODELS = 100


class ExactCounter:
    """Counts the tokens of a text as OpenAI's models do. Control tokens are counted as ordinary text."""

    def __init__(self, encoding: Encoding) -> None:
        self._encoding = encoding

    def count(self, text: str) -> int:
        """Return the number of tokens of a text, 0 if it is empty."""
        return len(self._encoding.encode_ordinary(text))


async def async_get_exact_counter(hass: HomeAssistant, *, is_wanted: bool) -> ExactCounter | None:
    """Return the exact counter, or None if tokens are estimated.

    Returns None if the package cannot be loaded or the vocabulary is damaged, too; that is logged once.
    """
    # The import executor has one thread, so a second caller waits for the first one instead of loading it again.
    return await hass.async_add_import_executor_job(load_exact_counter) if is_wanted else None


@cache
def load_exact_counter() -> ExactCounter | None:
    """Return the exact counter, or None if it cannot be used. The first call blocks for about half a second.

    A counter takes 75 MB of memory, so it is loaded once and never freed. tiktoken would download a damaged vocabulary.
    """
    try:
        from tiktoken import Encoding  # noqa: PLC0415 - few agents count exactly
    except ImportError as err:
        _log_unusable_counter("package tiktoken", type(err).__name__)
        return None
    try:
        vocabulary = (_VOCABULARY_FOLDER / _VOCABULARY_FILE).read_bytes()
    except OSError as err:
        _log_unusable_counter(f"vocabulary {_ENCODING}", type(err).__name__)
        return None
    if sha256(vocabulary).hexdigest() != _VOCABULARY_SHA256:
        _log_unusable_counter(f"vocabulary {_ENCODING}", "its hash is wrong")
        return None
    ranks = {b64decode(token): int(rank) for token, rank in map(bytes.split, vocabulary.splitlines())}
    return ExactCounter(Encoding(_ENCODING, pat_str=_PATTERN, mergeable_ranks=ranks, special_tokens={}))


def _log_unusable_counter(what: str, why: str) -> None:
    _LOGGER.warning("The %s cannot be used, so tokens are estimated: %s", what, why)


# A model, and whether its tokens were counted exactly.
type _CalibrationKey = tuple[str, bool]


class ModelCalibrations:
    """The calibrations of an account's models, and the token counters of its agents. Survives a reload."""

    def __init__(self) -> None:
        # Called after each change.
        self.save_soon: Callable[[], None] = do_nothing
        # Ordered by the time of the last reported usage, oldest first.
        self._calibrators: dict[_CalibrationKey, Calibrator] = {}
        self._size_trackers: dict[str, ContextSizeTracker] = {}
        # Not stored, because the first answers after a restart show it again.
        self._reasoning_detectors: dict[str, ReasoningDetector] = {}
        self._counters: dict[str, CalibratedCounter] = {}

    def restore(self, stored: Any) -> None:
        """Load the value that `as_dict` returned before the restart. An unreadable value is logged and ignored."""
        if stored is None:
            return
        try:
            calibrators = {
                (str(model), is_exact): Calibrator(Calibration.from_dict(factors))
                for is_exact, key in ((False, "models"), (True, "exact"))
                for model, factors in stored[key].items()
            }
            trackers = self._restore_size_trackers(stored["limits"])
        except (AttributeError, LookupError, TypeError, ValueError) as err:
            kind = type(err).__name__
            _LOGGER.warning("What was learned of the models' tokens cannot be read and is ignored: %s", kind)
            return
        # Calibrations that are already in use take precedence over stored ones.
        self._calibrators, self._size_trackers = calibrators | self._calibrators, trackers | self._size_trackers

    @callback
    def get_counter(self, agent_id: str, model: str, exact: ExactCounter | None = None) -> CalibratedCounter:
        """Return the agent's counter, which all of its windows share, set to count for the agent's current model.

        `exact` is the counter to calibrate, or None for the estimate.
        """
        calibrator = self._calibrators.setdefault((model, exact is not None), Calibrator())
        counter = self._counters.setdefault(agent_id, CalibratedCounter(calibrator))
        counter.set_calibrator(calibrator, exact)
        return counter

    @callback
    def learn_usage(self, request: Request, usage: Usage, exact: ExactCounter | None = None) -> None:
        """Update the calibration with the usage that a provider reported for a request.

        The usage is compared with the count of `exact`, or with the estimate if that is None. Requests that forbid tool
        calls are ignored, because the server may not read the tools of such a request. So are those with pictures or a
        web search, whose price says nothing about texts.
        """
        if (request.tools and not request.may_call) or not request.has_own_size(usage):
            return
        schemas = [tool.text for tool in request.tools]
        key = request.model, exact is not None
        self._calibrators[key] = calibrator = self._calibrators.pop(key, None) or Calibrator()
        sent = usage.input + usage.cleared
        if calibrator.learn(estimate_request(request.messages, schemas, exact), sent, usage.cached):
            self.save_soon()

    @callback
    def get_size_tracker(self, model: str) -> ContextSizeTracker:
        """Return the `ContextSizeTracker` of a model. All users of the model share it."""
        return self._size_trackers.setdefault(model, ContextSizeTracker(self._on_size_changed))

    @callback
    def get_reasoning_detector(self, model: str) -> ReasoningDetector:
        """Return the `ReasoningDetector` of a model. All users of the model share it."""
        return self._reasoning_detectors.setdefault(model, ReasoningDetector())

    @callback
    def forget_context_sizes(self, models: Collection[str] | None = None) -> None:
        """Forget the learned context sizes of these models, or of all models, after the user has reconfigured them."""
        for model, size in self._size_trackers.items():
            if models is None or model in models:
                size.reset()

    def _restore_size_trackers(self, stored: dict[str, Any]) -> dict[str, ContextSizeTracker]:
        trackers = {str(model): ContextSizeTracker(self._on_size_changed) for model in stored}
        for model, tracker in trackers.items():
            tracker.restore(stored[model])
        return trackers

    def _on_size_changed(self) -> None:
        self.save_soon()

    def as_dict(self) -> dict[str, Any]:
        """Return the learned values by model: factors for the estimate and for exact counts, and context sizes."""
        learned = {key: each.calibration for key, each in self._calibrators.items() if each.calibration.is_learned}
        models: dict[bool, dict[str, Any]] = {False: {}, True: {}}
        for model, is_exact in list(learned)[-_MAX_MODELS:]:
            models[is_exact][model] = learned[model, is_exact].as_dict()
        sizes = {model: stored for model, size in self._size_trackers.items() if (stored := size.as_dict())}
        limits = {model: sizes[model] for model in list(sizes)[-_MAX_MODELS:]}
        return {"models": models[False], "exact": models[True], "limits": limits}
