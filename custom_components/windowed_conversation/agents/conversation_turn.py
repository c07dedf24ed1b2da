"""A turn in Home Assistant as one value, which every step of the turn and after it reads."""

from collections.abc import Mapping
from dataclasses import dataclass, field
import time
from typing import Any
from uuid import uuid7

from homeassistant.components.conversation import ChatLog, ConversationInput

from ..bridge.local_intents import LocalIntents
from ..bridge.reply import ChatLogReply
from ..const import RecordLevel
from ..turn.memory_dialog import MemoryDialog
from ..turn.ports import PromptFingerprints
from ..turn.progress import Turn
from ..turn.speaker import Speaker
from ..window import Window, WindowStats
from .agent import Agent
from .live_context import TurnContext
from .lookup import async_find_agent


def new_record_id() -> str:
    """Return the id of a turn in the record. Ids sort by the time when they were made."""
    return str(uuid7())


@dataclass(slots=True)
class ConversationTurn:
    """One turn, which has the window of its key and the chat log, and then its result.

    `id` is its id in the record, `at` when it began, in seconds since the epoch. `state` has its progress and its
    outcome. `before` and `after` are the figures of the window at its start and after it. `local` is there once a local
    answer was tried. If a model was asked, `prompt` has the fingerprints of the system prompt, and `context` its live
    context. `attributes` name the agent that answered and the failures before, see `answer_attributes`.
    """

    agent: Agent
    entity_id: str
    key: str
    user_input: ConversationInput
    speaker: Speaker
    chat_log: ChatLog
    window: Window
    id: str = field(default_factory=new_record_id)
    at: float = field(default_factory=time.time)
    reply: ChatLogReply = field(init=False)
    dialog: MemoryDialog = field(init=False)
    before: WindowStats = field(init=False)
    after: WindowStats = field(init=False)
    state: Turn = field(init=False)
    local: LocalIntents | None = None
    context: TurnContext | None = None
    prompt: PromptFingerprints | None = None
    attributes: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.reply = ChatLogReply(self.chat_log, self.entity_id)
        self.dialog = MemoryDialog(self.agent.last_answers, self.key, self.speaker)
        self.before = self.after = self.window.stats()

    @property
    def current_agent(self) -> Agent:
        """The agent, or the one that a reload during the turn has made of its stored state."""
        return async_find_agent(self.agent.hass, self.agent.id) or self.agent

    @property
    def record_id(self) -> str | None:
        """The id by which the turn is found in the record, None if it is not recorded."""
        return None if self.agent.config.record is RecordLevel.OFF else self.id

    @property
    def speech(self) -> str:
        """The text that the user has heard."""
        return self.state.speech or (self.local.speech if self.local else "")
