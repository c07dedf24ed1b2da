"""Answers to the dialogs of Home Assistant's frontend that suggest a name, a description and labels before saving.

Its instructions begin with `Suggest in language "en" a name, a description, and labels for the following Home Assistant
automation.`, list existing names as `- Name (category: Lights) (labels: evening, hall)`, and end with the YAML.
"""

from dataclasses import dataclass
import re

_REQUEST_PATTERN = re.compile(
    r"Suggest in language \"[^\"]*\" .+? for the following Home Assistant (?P<domain>\w+)\.\n(?P<rest>.*)", re.DOTALL
)
_CONFIGURATION_PATTERN = re.compile(r"configuration is as follows:\s*(?P<yaml>.*)", re.DOTALL)
_ACTION_PATTERN = re.compile(r"\baction: *\w+\.(?P<name>\w+)")
_ENTITY_PATTERN = re.compile(r"\bentity_id:\s*(?:-\s*)?\w+\.(?P<name>\w+)")
_LABELS_PATTERN = re.compile(r"\(labels: (?P<names>[^)\n]+)\)")


@dataclass(frozen=True, slots=True)
class Suggestion:
    """The suggested name and description, and the labels of the first existing one that has any."""

    name: str
    description: str
    labels: tuple[str, ...]

    def get_value(self, field: str) -> str | tuple[str, ...]:
        """Return the suggestion for a field; empty for a field that has none."""
        match field:
            case "name":
                return self.name
            case "description":
                return self.description
            case "labels":
                return self.labels
        return ""


def read_suggestion(said: str) -> Suggestion | None:
    """Return the suggestion that the instructions ask for, or None if they ask for something else."""
    asked = _REQUEST_PATTERN.match(said)
    if asked is None:
        return None
    configuration = _CONFIGURATION_PATTERN.search(asked["rest"])
    yaml = configuration["yaml"] if configuration else ""
    action, entities = _ACTION_PATTERN.search(yaml), _ENTITY_PATTERN.findall(yaml)
    words = [action["name"] if action else f"new_{asked['domain']}", *entities[-1:]]
    name = " ".join(words).replace("_", " ").capitalize()
    labels = _LABELS_PATTERN.search(asked["rest"])
    used = tuple(label.strip() for label in labels["names"].split(",")) if labels else ()
    return Suggestion(name, f"This {asked['domain']} will {name[:1].lower()}{name[1:]}.", used)
