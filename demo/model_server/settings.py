"""The server's settings, and the shapes and faults that a model id can add to them.

A model id is one of the offered ids, followed by any number of shapes and at most one fault:
`scripted+ollama+think_tags+429`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from .faults import FAULTS
from .refusal import OverflowReport
from .shapes import SHAPES

DEFAULT_MODEL = "scripted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The start options. Raises ValueError with a message that names the invalid value."""

    host: str = "127.0.0.1"
    port: int = 0
    # A request with another key is refused with 401.
    key: str | None = None
    # In seconds per piece of an answer.
    delay: float = 0.0
    # In seconds before the first byte.
    latency: float = 0.0
    # In seconds before each event of a web search.
    search_delay: float = 0.0
    # Whether an invalid request is refused with 400.
    strict: bool = False
    # Whether the model does what sentences with MUST order.
    obedient: bool = False
    shapes: tuple[str, ...] = ()
    models: tuple[str, ...] = (DEFAULT_MODEL,)
    # In tokens. None means no limit.
    context_size: int | None = None
    # The report about a request that exceeds `context_size`.
    overflow_report: OverflowReport = OverflowReport.CODE
    # Maps field names of a usage to the JSON text to report instead of the count, or to None to omit the field.
    figures: Mapping[str, str | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Validate the values."""
        flags = (self.strict, self.obedient)
        if not (self.key is None or isinstance(self.key, str)) or not all(isinstance(flag, bool) for flag in flags):
            raise ValueError("key must be text, strict and obedient true or false")
        for name in ("delay", "latency", "search_delay"):
            seconds = getattr(self, name)
            if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 <= seconds <= 3600:
                raise ValueError(f"{name} must be a number of seconds from 0 to 3600")
        if unknown := [shape for shape in self.shapes if shape not in SHAPES]:
            raise ValueError(f"no such shape: {', '.join(map(str, unknown))}; there are {', '.join(SHAPES)}")
        if not self.models or not all(isinstance(model, str) for model in self.models):
            raise ValueError("at least one model must be offered, by name")
        if self.context_size is not None and not (isinstance(self.context_size, int) and self.context_size > 0):
            raise ValueError("context_size must be a number of tokens above 0")

    def list_model_ids(self) -> list[str]:
        """Return the model ids to list: the plain models, and one id for each shape, but none with faults."""
        return sorted([*self.models, *(f"{self.models[0]}+{shape}" for shape in SHAPES)])

    def parse_model_id(self, model: object) -> ModelChoice | None:
        """Return the shapes and the fault that a model id selects, or None if there is no such model."""
        base, *words = model.split("+") if isinstance(model, str) else ("",)
        faults = [word for word in words if word in FAULTS]
        known = base in self.models and all(word in SHAPES or word in FAULTS for word in words)
        if not known or len(faults) > 1:
            return None
        asked = tuple(word for word in words if word in SHAPES)
        return ModelChoice((*asked, *self.shapes), faults[0] if faults else None)


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """The shapes of the answer, with those from the model id first, and the fault that the id names."""

    shapes: tuple[str, ...]
    fault: str | None
