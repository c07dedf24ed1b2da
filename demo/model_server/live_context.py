"""The scripted model's look-up of states with the available tool, and the states in a GetLiveContext result."""

from dataclasses import dataclass
import re

from .conversation import Answer, Call, Conversation

_CORES_TOOL, _OURS = "GetLiveContext", "get_states"

# GetLiveContext returns YAML: "- names: Kitchen light, Big light", then " state: 'on'".
_ENTITY = re.compile(r"^- names: (?P<names>.+)(?P<fields>(?:\n  .*)*)", re.MULTILINE)
_STATE = re.compile(r"^  state: ['\"]?(?P<state>.*?)['\"]?$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Seen:
    """The states in a tool result: the state of each entity by its first name, in the order of the result."""

    states: dict[str, str]

    @property
    def first(self) -> str:
        """The state of the first entity, or "unknown" if there is none."""
        return next(iter(self.states.values()), "unknown")

    def named(self, word: str) -> str:
        """Return the state of the first entity with this word in its name, or "unknown" if there is none."""
        return next((state for name, state in self.states.items() if word in name.lower().split()), "unknown")


def look(conversation: Conversation, **filters: str) -> Answer:
    """Return a tool call that looks up states with these filters: name, area, domain."""
    if tool := conversation.tool(_OURS):
        return Answer(calls=(Call(tool, {f"{name}s": [value] for name, value in filters.items()}),))
    tool = conversation.tool(_CORES_TOOL)
    return Answer(calls=(Call(tool, filters),)) if tool else Answer(text="I have no tool for that.")


def seen(text: str) -> Seen:
    """Return the states in the text of a tool result."""
    states = {}
    for entity in _ENTITY.finditer(text):
        state = _STATE.search(entity["fields"])
        states[entity["names"].split(",")[0].strip(" '\"")] = state["state"] if state else "unknown"
    return Seen(states)
