"""A sentence as the scripted model reads it, in English or German: its action, the kinds of things, and the state.

The words only decide the kind of the answer. The things, their states and the tools come from the request.
"""

from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
import re


class Action(StrEnum):
    """The action that a sentence asks for."""

    ON = "on"
    OFF = "off"
    OPEN = "open"
    CLOSE = "close"
    LOCK = "lock"
    UNLOCK = "unlock"
    ADD = "add"
    PLAY = "play"
    TIMER = "timer"
    PERCENT = "percent"
    BRIGHTER = "brighter"
    DARKER = "darker"
    DEGREES = "degrees"
    WARMER = "warmer"
    COLDER = "colder"


_GERMAN_PATTERN = re.compile(
    r"\b(?:der|das|den|dem|ist|sind|ich|mir|mich|wir|wie|wo|wer|wann|welche[rs]?|mache?|stelle?|schalte?|schließe?|"
    r"öffne|setz|bitte|danke|guten?|hallo|ja|nein|noch|und|nicht|eine?|alles|überall|im|erzähl|spiel|dimm|brauche|hat|"
    r"hab|haben|es|am|regnet|schreib|kannst|du|weißt|unsere?|meine?|zu|heißt|ab|auf|aus)\b"
)
_ENGLISH_PATTERN = re.compile(
    r"\b(?:the|is|are|i|me|we|how|where|who|when|which|please|thanks|yes|no|and|not|a|all|it|to)\b"
)
_POLITE = r"(?:please|bitte|hey|so|okay|ok|oh|kannst du|könntest du|can you|could you|would you|will you)"
_REQUEST_PATTERN = re.compile(
    r"^(?:please |bitte )?(?:(?:can|could|would|will) you|kannst du|könntest du)\b(?!.*\btell\b)"
)
_POLITE_PATTERN = re.compile(rf"^(?:{_POLITE}[, ]+)+|[, ]+{_POLITE}(?=[.!?]*$)")
_QUESTION_PATTERN = re.compile(
    r"^(?:is|are|was|were|did|do|does|has|have|what|when|where|who|whose|which|how|why|any|"
    r"tell me (?:if|whether|about)|sag mir|"
    r"ist|sind|hat|habe?|haben|was|wann|wo|wer|wem|wie|warum|welche\w*|brauche?n?|muss|läuft|steht|gibt|weißt)\b|"
    r"^what's|^who's|^where's|\?$"
)
# The first pattern that is found decides.
_ACTION_PATTERNS: tuple[tuple[Action, re.Pattern[str]], ...] = tuple(
    (action, re.compile(pattern))
    for action, pattern in (
        (Action.TIMER, r"\btimer\b"),
        (Action.ADD, r"^(?:add|put|write|setz\w*|schreib\w*|pack\w*|tu)\b.*\b(?:list|\w*liste)\b"),
        (Action.PLAY, r"^(?:play|spiel\w*)\b"),
        (Action.PERCENT, r"\b\d+ ?(?:%|percent|prozent)"),
        (Action.DEGREES, r"\b\d+(?:[.,]\d)? ?(?:°|degrees?|grad\b)"),
        (Action.BRIGHTER, r"\b(?:brighter|heller|(?:too|so|pretty) dark|(?:zu|so) dunkel)\b"),
        (Action.DARKER, r"\b(?:darker|dimmer|dunkler|(?:too|so) bright|(?:zu|so) hell|dim|dimm\w*)\b"),
        (Action.COLDER, r"\b(?:colder|cooler|kälter|kühler|(?:too|so) (?:warm|hot)|(?:zu|so) (?:warm|heiß))\b"),
        (Action.WARMER, r"\b(?:warmer|wärmer|cold|freezing|chilly|kalt|friere)\b"),
        (Action.UNLOCK, r"\bunlock\b|\b(?:schließ|sperr)\w*\b.*\bauf\b|\baufschließen|\bentriegel"),
        (Action.LOCK, r"\block\b|\b(?:schließ|sperr)\w*\b.*\bab\b|\babschließen|\bverriegel"),
        (Action.OPEN, r"\bopen\b|\böffne\w*|\b(?:mach|fahr)\w*\b.*\b(?:auf|hoch)\b|\baufmachen"),
        (Action.CLOSE, r"\b(?:close|shut)\b|\bschließ\w*|\b(?:mach|fahr)\w*\b.*\b(?:zu|runter)\b|\bzumachen"),
        (
            Action.OFF,
            (
                r"\b(?:turn|switch|put|shut)\b.*\b(?:off|out)\b|\b(?:mach|schalt)\w*\b.*\baus\b|ausschalten|"
                r"^(?!.*\b(?:is|are|ist|sind)\b).*\b(?:off|aus)$"
            ),
        ),
        (
            Action.ON,
            (
                r"\b(?:turn|switch|put)\b.*\bon\b|\b(?:mach|schalt)\w*\b.*\b(?:an|ein)\b|\beinschalten|"
                r"^(?!.*\b(?:is|are|ist|sind)\b).*\b(?:on|an)$"
            ),
        ),
    )
)
# The kind of thing that a word names: a domain, or a word of the name of a device class.
_KIND_PATTERNS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (kind, re.compile(pattern))
    for kind, pattern in (
        ("light", r"\b(?:lights?|lamps?|licht(?:er)?|lampen?)\b"),
        ("window", r"\b(?:windows?|fenster)\b"),
        ("garage", r"\b(?:garage|garagentor|tor)\b"),
        ("lock", r"\b(?:locks?|locked|doors?|tür(?:en)?|abgeschlossen|zugeschlossen|schloss)\b"),
        ("climate", r"\b(?:heating|heater|thermostat|heizung)\b"),
        ("weather", r"\b(?:weather|rain\w*|umbrella|snow\w*|outside|wetter|regn\w*|regenschirm|schnei\w*|draußen)\b"),
        (
            "person",
            r"\b(?:who|any(?:one|body)|someone|everyone|wer|jemand|alle)\b.*\b(?:home|house|hause|zuhause|da)\b",
        ),
        ("todo", r"\b(?:list|\w*liste)\b"),
        ("cover", r"\b(?:blinds?|shutters?|curtains?|rollläden|rollladen|rollos?|jalousien?|vorhänge?)\b"),
        ("media_player", r"\b(?:music|radio|tv|fernseher|musik)\b"),
    )
)
_STATE_PATTERNS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("open", re.compile(r"\b(?:open|offen|offengelassen|auf)\b")),
    ("closed", re.compile(r"\b(?:closed|shut|geschlossen|zu)\b(?! hause)")),
    ("unlocked", re.compile(r"\b(?:unlocked|unverschlossen|aufgeschlossen)\b")),
    ("locked", re.compile(r"\b(?:locked|abgeschlossen|zugeschlossen|verriegelt)\b")),
    ("off", re.compile(r"\b(?:off|aus)\b")),
    ("on", re.compile(r"\b(?:on|an|angelassen|running|läuft|brennt)\b")),
)
_ALL_PATTERN = re.compile(r"\b(?:all|every\w*|alle[sn]?|überall|whole|ganze[ns]?)\b")
_ANY_PATTERN = re.compile(
    r"\b(?:any|anything|something|some|which|what|leave|left|irgend\w*|etwas|was|welche\w*|noch|gelassen|angelassen)\b"
)
_MEASURE_PATTERN = re.compile(
    r"\b(?:temperatur\w*|how (?:warm|cold|hot)|wie (?:warm|kalt|heiß)|warmer|colder|wärmer|kälter|warmest|coldest|"
    r"wärmsten?|kältesten?)\b"
)
_PRONOUN_PATTERN = re.compile(r"\b(?:it(?!'s| is)|them|that one|(?<!ist )es(?! ist)|sie|ihn)\b")
_NEGATION_PATTERN = re.compile(r"^(?:don't|do not|never)\b|\bnicht\b")
_PAST_PATTERN = re.compile(
    r"^(?:was (?:the|it|there|my|our|any\w*)|were|when did|war\w*)\b|"
    r"\b(?:yesterday|last (?:night|week)|earlier|gestern|letzte (?:nacht|woche)|vorhin)\b"
)
_FUTURE_PATTERN = re.compile(r"\b(?:will|tomorrow|later|tonight|wird|morgen|später|heute abend)\b")
_STATEMENT_PATTERN = re.compile(r"(?:i|we|my|our|ich|wir|mein\w*|unser\w*)\b")
_HERE_PATTERN = re.compile(r"\b(?:here|hier)\b")
_NUMBER_PATTERN = re.compile(r"\d+(?:[.,]\d+)?")


@dataclass(frozen=True)
class Sentence:
    """A sentence of a person; `said` is without the context before it."""

    said: str

    @cached_property
    def text(self) -> str:
        """The sentence in lower case, without polite words."""
        return _POLITE_PATTERN.sub("", " ".join(self.said.lower().split())).strip()

    @cached_property
    def words(self) -> list[str]:
        """The words in lower case."""
        return re.findall(r"\w+", self.said.lower())

    @cached_property
    def is_german(self) -> bool:
        """Whether more of its words are only German than only English."""
        said = self.said.lower()
        return len(_GERMAN_PATTERN.findall(said)) > len(_ENGLISH_PATTERN.findall(said))

    @cached_property
    def is_question(self) -> bool:
        """Whether it asks for something to be said, not to be done."""
        is_request = _REQUEST_PATTERN.match(self.said.lower()) is not None and self.action is not None
        return not is_request and _QUESTION_PATTERN.search(self.text) is not None

    @cached_property
    def action(self) -> Action | None:
        """The action that it asks for, or None."""
        return next((action for action, pattern in _ACTION_PATTERNS if pattern.search(self.text)), None)

    @cached_property
    def kinds(self) -> list[str]:
        """The kinds of things that it names."""
        return [kind for kind, pattern in _KIND_PATTERNS if pattern.search(self.text)]

    @cached_property
    def state(self) -> str | None:
        """The state that it asks for, or None."""
        return next((state for state, pattern in _STATE_PATTERNS if pattern.search(self.text)), None)

    @cached_property
    def number(self) -> float | None:
        """The first number, or None."""
        found = _NUMBER_PATTERN.search(self.text)
        return float(found[0].replace(",", ".")) if found else None

    @cached_property
    def means_all(self) -> bool:
        """Whether it is about all things of a kind."""
        return _ALL_PATTERN.search(self.text) is not None

    @cached_property
    def means_any(self) -> bool:
        """Whether it is about whichever things are in a state."""
        return _ANY_PATTERN.search(self.text) is not None

    @cached_property
    def is_about_temperature(self) -> bool:
        """Whether it asks how warm it is somewhere."""
        return _MEASURE_PATTERN.search(self.text) is not None

    @cached_property
    def has_pronoun(self) -> bool:
        """Whether it names a thing only as "it"."""
        return _PRONOUN_PATTERN.search(self.text) is not None

    @cached_property
    def is_negated(self) -> bool:
        """Whether it asks not to do something."""
        return _NEGATION_PATTERN.search(self.text) is not None

    @cached_property
    def is_about_past(self) -> bool:
        """Whether it asks about the past."""
        return _PAST_PATTERN.search(self.text) is not None

    @cached_property
    def is_about_future(self) -> bool:
        """Whether it asks about the future."""
        return _FUTURE_PATTERN.search(self.text) is not None

    @cached_property
    def is_statement(self) -> bool:
        """Whether people say something about themselves with it."""
        return not self.is_question and _STATEMENT_PATTERN.match(self.text) is not None

    @cached_property
    def is_here(self) -> bool:
        """Whether it is about the room in which it is said."""
        return _HERE_PATTERN.search(self.text) is not None

    def names(self, name: str) -> bool:
        """Return whether it has this name, as whole words."""
        return re.search(rf"(?<!\w){re.escape(name.lower())}(?!\w)", self.text) is not None
