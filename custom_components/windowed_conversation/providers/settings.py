"""The settings that a model is asked with: made once from the configuration, read by what encodes a request."""

from dataclasses import dataclass

from .profile import Effort


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """How a model answers.

    `effort` is how much it thinks, `temperature` how freely it chooses, and `top_p` among how much of what is likely;
    None leaves each to the provider.
    `compaction`: whether the provider may shorten old turns by itself. `max_answer_tokens` are kept free for the answer
    and limit it; thoughts may come on top.
    """

    effort: Effort | None = None
    temperature: float | None = None
    top_p: float | None = None
    compaction: bool = False
    max_answer_tokens: int = 1000


DEFAULT_SETTINGS = ModelSettings()
