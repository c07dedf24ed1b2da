"""The set of conversations in which facts and other statements are marked, split into readings as the agent does it."""

from collections.abc import Iterator
from dataclasses import dataclass
import json
from pathlib import Path
from typing import Any, NamedTuple

from custom_components.windowed_conversation.memory import PastTurn
from custom_components.windowed_conversation.turn.speaker import Speaker, is_about_speaker
from tests.memory.content import DAY, NOW

AGENT = "agent"
_FOLDER = Path(__file__).with_name("conversations")
LANGUAGES = tuple(sorted(path.stem for path in _FOLDER.glob("*.json")))
# Home Assistant's codes of languages that it has only with a region or a script.
_CODES = {"pt": "pt-BR", "zh": "zh-Hans", "en": "en-GB"}
_TURN_SECONDS = 60.0


class MarkedTurn(NamedTuple):
    """A text and the answer of the assistant. `speaker` is None if the speaker is unknown."""

    speaker: str | None
    text: str
    answer: str


@dataclass(frozen=True, slots=True)
class MarkedFact:
    """A lasting fact, in the words of a turn. `replaces` and `confirms` are ids of earlier conversations."""

    turn: int
    quote: str
    words: tuple[str, ...]
    subject: str = ""
    replaces: str = ""
    confirms: str = ""

    @property
    def text(self) -> str:
        """The fact, after its subject if it begins with a pronoun."""
        return f"{self.subject}: {self.quote}" if self.subject else self.quote


class NonFact(NamedTuple):
    """A statement in a turn that is no fact to keep, and its kind."""

    turn: int
    quote: str
    kind: str


@dataclass(frozen=True, slots=True)
class Reading:
    """The turns of one speaker in a conversation, oldest first, with their indices in the conversation."""

    speaker: Speaker
    turns: tuple[PastTurn, ...]
    indices: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class MarkedConversation:
    """A conversation with its facts and non-facts. `day` is its place among those of its language."""

    id: str
    language: str
    day: int
    turns: tuple[MarkedTurn, ...]
    facts: tuple[MarkedFact, ...]
    non_facts: tuple[NonFact, ...]

    def iter_quotes(self) -> Iterator[tuple[int, str]]:
        """Yield the index of the turn and the words of each fact and non-fact."""
        yield from ((each.turn, each.quote) for each in self.facts)
        yield from ((each.turn, each.quote) for each in self.non_facts)

    def split(self) -> tuple[Reading, ...]:
        """Return a reading for each speaker. Texts of unknown speakers about themselves are in none."""
        stored = [(index, self._build_turn(index)) for index in range(len(self.turns)) if self._is_stored(index)]
        return tuple(
            Reading(
                build_speaker(name, self.language, self.id),
                tuple(turn for index, turn in stored if self.turns[index].speaker == name),
                tuple(index for index, _ in stored if self.turns[index].speaker == name),
            )
            for name in dict.fromkeys(self.turns[index].speaker for index, _ in stored)
        )

    def _is_stored(self, index: int) -> bool:
        turn = self.turns[index]
        return turn.speaker is not None or not is_about_speaker(turn.text, self.language)

    def _build_turn(self, index: int) -> PastTurn:
        turn, speaker = self.turns[index], build_speaker(self.turns[index].speaker, self.language, self.id)
        at = NOW + self.day * DAY + index * _TURN_SECONDS
        return PastTurn(self.id, at, turn.text, turn.answer, AGENT, speaker.person, unread_language=speaker.language)


def build_speaker(name: str | None, language: str, conversation: str) -> Speaker:
    """Return somebody who speaks alone in a conversation."""
    person = name and f"{name}-id"
    return Speaker("", _CODES.get(language, language), person, name, is_alone=True, conversation=conversation)


def load_conversations(language: str) -> tuple[MarkedConversation, ...]:
    """Return the conversations of a language, in their order."""
    data = json.loads((_FOLDER / f"{language}.json").read_text(encoding="utf-8"))
    return tuple(_parse(each, language, day) for day, each in enumerate(data))


def _parse(data: dict[str, Any], language: str, day: int) -> MarkedConversation:
    return MarkedConversation(
        data["id"],
        language,
        day,
        tuple(MarkedTurn(**each) for each in data["turns"]),
        tuple(MarkedFact(**each | {"words": tuple(each["words"])}) for each in data["facts"]),
        tuple(NonFact(**each) for each in data["not_facts"]),
    )
