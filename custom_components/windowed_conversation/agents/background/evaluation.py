"""Evaluations of AI tasks: yes or no, a choice, or a score, each as probabilities that a model writes as data.

Questions and answers have the shapes of Home Assistant's action, which exists since 2026.11.
"""

from collections.abc import Mapping
from functools import partial
import json
import math
from typing import Any

from ...providers import AnswerSchema
from .tasks import DataDemand

SYSTEM_PROMPT = (
    "You judge what is described. For each question, estimate how probable each answer is, from 0 to 1. "
    "The probabilities of one question add up to 1."
)

# Names of questions and choices may have characters that providers refuse.
_QUESTION_KEY, _OPTION_KEY = "question_{}", "option_{}"
_YES_KEY = "yes"


def build_evaluation_demand(name: str, questions: Mapping[str, Mapping[str, Any]]) -> DataDemand:
    """Return the demand for the probabilities of each question's answers."""
    properties = {
        _QUESTION_KEY.format(place): {
            "type": "object",
            "description": question["instructions"],
            "properties": {
                key: {"type": "number", "description": text} for key, text in _describe_options(question).items()
            },
            "required": list(_describe_options(question)),
        }
        for place, question in enumerate(questions.values())
    }
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return DataDemand(AnswerSchema(name, schema), partial(_find_problem, properties))


def _find_problem(properties: Mapping[str, Mapping[str, Any]], data: Any) -> str | None:
    for key, each in properties.items():
        given = data.get(key) if isinstance(data, dict) else None
        options = each["required"]
        if not isinstance(given, dict) or not all(map(_is_probability, map(given.get, options))):
            return f"{key} needs a number from 0 to 1 for each of {', '.join(options)}"
        if options != [_YES_KEY] and not any(map(given.get, options)):
            return f"{key} has no probable answer"
    return None


def format_state(state: Any) -> str:
    """Return the state that a model judges as text."""
    return state if isinstance(state, str) else json.dumps(state, ensure_ascii=False, default=str)


def read_evaluation(questions: Mapping[str, Mapping[str, Any]], data: Any) -> dict[str, dict[str, Any]]:
    """Return the fields of each question's answer, from data without a problem. Probabilities add up to 1."""
    answers: dict[str, dict[str, Any]] = {}
    for place, (name, question) in enumerate(questions.items()):
        given = data[_QUESTION_KEY.format(place)]
        if question["type"] == "noul":
            answers[name] = {"noul": float(given[_YES_KEY])}
            continue
        weights = [float(given[key]) for key in _describe_options(question)]
        shares = [weight / math.fsum(weights) for weight in weights]
        if question["type"] == "choice":
            probabilities = dict(zip(question["criteria"], shares, strict=True))
            answers[name] = {
                "choice": max(probabilities, key=probabilities.__getitem__),
                "probabilities": probabilities,
            }
        else:
            score = math.fsum(level * share for level, share in enumerate(shares))
            answers[name] = {"score": score, "probabilities": shares}
    return answers


def _describe_options(question: Mapping[str, Any]) -> dict[str, str]:
    """Return the answers of a question as text, by the name that they have in the data."""
    criteria = question.get("criteria")
    if criteria is None:
        return {_YES_KEY: "The probability that the answer is yes."}
    texts = criteria if isinstance(criteria, list) else [f"{name}: {text}" for name, text in criteria.items()]
    return {_OPTION_KEY.format(place): text for place, text in enumerate(texts)}


def _is_probability(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1
