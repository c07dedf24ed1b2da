"""The scripted model's look at the home with the tool that it has, and the states in a GetLiveContext result."""

from dataclasses import dataclass
import re

from .conversation import Answer, Call, Conversation

_CORES_TOOL, _OURS = "GetLiveContext", "get_states"

# GetLiveContext answers with YAML: "- names: Kitchen light, Big light", then "  state: 'on'".
_ENTITY = re.compile(r"^- names: (?P<names>.+)(?P<fields>(?:\n  .*)*)", re.MULTILINE)
_STATE = re.compile(r"^  state: ['\"]?(?P<state>.*?)['\"]?$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Seen:
    """The home in a result: the state of each entity by its first name, in the result's order."""

    states: dict[str, str]

    @property
    def first(self) -> str:
        """The state of the first entity, "unknown" if there is none."""
        return next(iter(self.states.values()), "unknown")

    def named(self, word: str) -> str:
        """Return the state of the first entity with this word in its name, "unknown" if there is none."""
        return next((state for name, state in self.states.items() if word in name.lower().split()), "unknown")


def look(conversation: Conversation, **filters: str) -> Answer:
    """Return the call that looks with these filters: name, area, domain."""
    if tool := conversation.tool(_OURS):
        return Answer(calls=(Call(tool, {f"{name}s": [value] for name, value in filters.items()}),))
    tool = conversation.tool(_CORES_TOOL)
    return Answer(calls=(Call(tool, filters),)) if tool else Answer(text="I have no tool for that.")


def seen(text: str) -> Seen:
    """Return the states in the text of a result."""
    states = {}
    for entity in _ENTITY.finditer(text):
        state = _STATE.search(entity["fields"])
        states[entity["names"].split(",")[0].strip(" '\"")] = state["state"] if state else "unknown"
    return Seen(states)
