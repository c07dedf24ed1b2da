"""A year of dialogues between two friends, questions about them, and the share of answers that a search finds.

`dialogues.txt` was written for this repository (CC0). It contains sessions by day, with one utterance per line. A name
in braces refers to the question that the utterance answers; `questions.txt` contains the questions by name.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

_FOLDER = Path(__file__).parent
_SPEAKERS = {"N": "Nora", "T": "Tom"}
_CHARS_PER_TOKEN = 4


type Search = Callable[[str], list[str]]


class Utterance(NamedTuple):
    """An utterance of a session, with its time and the name of the question that it answers."""

    session_day: str
    at: float
    text: str
    answers: str | None


def utterances() -> list[Utterance]:
    """Return all utterances in order."""
    said = []
    for session in (_FOLDER / "dialogues.txt").read_text().split("# ")[1:]:
        day, *lines = session.splitlines()
        start = datetime.fromisoformat(day).replace(tzinfo=UTC).timestamp()
        for number, line in enumerate(lines):
            speaker, _, text = line.partition(": ")
            text, _, name = text.removesuffix("}").partition(" {")
            said.append(Utterance(day, start + number, f"{_SPEAKERS[speaker]}: {text}", name or None))
    return said


def questions() -> list[tuple[str, str]]:
    """Return pairs of a question and the utterance that answers it."""
    answers = {said.answers: said.text for said in utterances()}
    lines = (_FOLDER / "questions.txt").read_text().splitlines()
    return [(question, answers[name]) for name, question in (line.split(" | ") for line in lines)]


def found_in_turns(search: Search, most: int) -> float:
    """Return the share of questions whose answer is among the first `most` results."""
    asked = questions()
    return sum(answer in search(question)[:most] for question, answer in asked) / len(asked)


def found_in_tokens(search: Search, most: int) -> float:
    """Return the share of questions whose answer is among the best results that fit in `most` tokens."""
    asked = questions()
    return sum(answer in _first(search(question), most) for question, answer in asked) / len(asked)


def _first(texts: list[str], most: int) -> list[str]:
    lengths = [len(text) for text in texts]
    fitting = [number for number in range(len(texts)) if sum(lengths[: number + 1]) <= most * _CHARS_PER_TOKEN]
    return texts[: len(fitting)]
