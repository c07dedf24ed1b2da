"""The scripted model's look-up of states with the available tool, and the states in a GetLiveContext result."""

from dataclasses import dataclass
import re

from .conversation import Answer, Call, Conversation

_CORE_TOOL, _OWN_TOOL = "GetLiveContext", "get_states"

# GetLiveContext returns YAML: "- names: Kitchen light, Big light", then " state: 'on'".
_ENTITY_PATTERN = re.compile(r"^- names: (?P<names>.+)(?P<fields>(?:\n  .*)*)", re.MULTILINE)
_STATE_PATTERN = re.compile(r"^  state: ['\"]?(?P<state>.*?)['\"]?$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class LookUpStates:
    """The states in a tool result: the state of each entity by its first name, in the order of the result."""

    state_by_name: dict[str, str]

    @property
    def first_state(self) -> str:
        """The state of the first entity, or "unknown" if there is none."""
        return next(iter(self.state_by_name.values()), "unknown")

    def find_by_word(self, word: str) -> str:
        """Return the state of the first entity with this word in its name, or "unknown" if there is none."""
        return next((state for name, state in self.state_by_name.items() if word in name.lower().split()), "unknown")


def look_up_states(conversation: Conversation, **filters: str) -> Answer:
    """Return a tool call that looks up states with these filters: name, area, domain."""
    if tool := conversation.find_tool(_OWN_TOOL):
        return Answer(calls=(Call(tool, {f"{name}s": [value] for name, value in filters.items()}),))
    tool = conversation.find_tool(_CORE_TOOL)
    return Answer(calls=(Call(tool, filters),)) if tool else Answer(text="I have no tool for that.")


def parse_states(text: str) -> LookUpStates:
    """Return the states in the text of a tool result."""
    states = {}
    for entity in _ENTITY_PATTERN.finditer(text):
        state = _STATE_PATTERN.search(entity["fields"])
        states[entity["names"].split(",")[0].strip(" '\"")] = state["state"] if state else "unknown"
    return LookUpStates(states)
