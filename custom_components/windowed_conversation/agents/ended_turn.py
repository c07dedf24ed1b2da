"""A turn that ended, as one value: what every step after the turn reads."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from homeassistant.components.conversation import ConversationInput

from ..turn.ports import PromptFingerprints
from ..turn.progress import Outcome
from ..turn.speaker import Speaker
from ..window import Window, WindowStats


@dataclass(frozen=True, slots=True)
class EndedTurn:
    """A turn that ended, answered or not.

    `id` is its id in the record, `at` when it began, in seconds since the epoch. `heard` is what the user heard.
    `before` and `after` are the figures of its window at its start and now. `answer` holds who answered and who failed
    before, see `answer_attributes`. `prompt` has the fingerprints of the system prompt, or None if no model was asked.
    """

    id: str
    at: float
    entity_id: str
    asked: ConversationInput
    speaker: Speaker
    window: Window
    before: WindowStats
    after: WindowStats
    outcome: Outcome
    answer: Mapping[str, Any]
    heard: str = ""
    prompt: PromptFingerprints | None = None

    @property
    def evicted_messages(self) -> int:
        """How many messages left the window during the turn."""
        return self.after.evicted_messages - self.before.evicted_messages
