"""The model settings of a request: made once from the configuration, read only by the encoders."""

from dataclasses import dataclass

from .profile import Effort


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """The settings of a model's answers.

    `effort` is how much it thinks. `temperature` and `top_p` control how it samples tokens. None leaves each to the
    provider. `compaction`: whether the provider may shorten old turns by itself. `max_answer_tokens` are reserved for
    the answer and limit it; the reasoning of a model that reasons comes on top.
    """

    effort: Effort | None = None
    temperature: float | None = None
    top_p: float | None = None
    compaction: bool = False
    max_answer_tokens: int = 1000


DEFAULT_SETTINGS = ModelSettings()
