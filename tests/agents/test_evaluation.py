"""Tests of evaluations: the demand for data, its problems, and the answers."""

from typing import Any

import pytest

from custom_components.windowed_conversation.agents.background.evaluation import (
    build_evaluation_demand,
    format_state,
    read_evaluation,
)

QUESTIONS: dict[str, dict[str, Any]] = {
    "is anybody there?": {"type": "noul", "instructions": "Is somebody at the door?"},
    "who": {
        "type": "choice",
        "instructions": "Who is it?",
        "criteria": {"the post": "Somebody with parcels", "a guest": "Somebody without"},
    },
    "haste": {"type": "score", "instructions": "How urgent is it?", "criteria": ["not", "a little", "very"]},
}
DATA = {
    "question_0": {"yes": 0.9},
    "question_1": {"option_0": 0.375, "option_1": 0.125},
    "question_2": {"option_0": 0, "option_1": 0.5, "option_2": 0.5},
}


def test_schema_names_no_question_and_no_choice_as_a_property() -> None:
    schema = build_evaluation_demand("door", QUESTIONS).schema.schema

    assert list(schema["properties"]) == ["question_0", "question_1", "question_2"]
    assert list(schema["properties"]["question_1"]["properties"]) == ["option_0", "option_1"]
    assert "the post: Somebody with parcels" in str(schema)


def test_answers_are_probabilities_that_add_up() -> None:
    answers = read_evaluation(QUESTIONS, DATA)

    assert answers["is anybody there?"] == {"noul": 0.9}
    assert answers["who"] == {"choice": "the post", "probabilities": {"the post": 0.75, "a guest": 0.25}}
    assert answers["haste"] == {"score": 1.5, "probabilities": [0.0, 0.5, 0.5]}


def test_good_data_have_no_problem() -> None:
    assert build_evaluation_demand("door", QUESTIONS).find_problem(DATA) is None


@pytest.mark.parametrize(
    "change",
    [
        {"question_0": {"yes": 1.1}},
        {"question_0": {"yes": True}},
        {"question_0": {"yes": "0.9"}},
        {"question_0": 0.9},
        {"question_1": {"option_0": 0.6}},
        {"question_1": {"option_0": 0, "option_1": 0}},
        {"question_2": {"option_0": -1, "option_1": 0, "option_2": 1}},
        {"question_2": {"option_0": float("nan"), "option_1": 0, "option_2": 1}},
    ],
)
def test_bad_data_are_named_by_their_question(change: dict[str, Any]) -> None:
    problem = build_evaluation_demand("door", QUESTIONS).find_problem({**DATA, **change})

    assert problem is not None
    assert problem.startswith(next(iter(change)))


@pytest.mark.parametrize("data", [None, [], "yes", {}])
def test_data_of_another_shape_are_a_problem(data: Any) -> None:
    assert build_evaluation_demand("door", QUESTIONS).find_problem(data)


def test_impossible_event_is_no_problem_for_yes_or_no() -> None:
    assert build_evaluation_demand("door", QUESTIONS).find_problem({**DATA, "question_0": {"yes": 0}}) is None


@pytest.mark.parametrize(
    ("state", "text"), [("rain", "rain"), ({"Tür": "offen"}, '{"Tür": "offen"}'), (None, "null"), ([1], "[1]")]
)
def test_state_is_sent_as_text(state: Any, text: str) -> None:
    assert format_state(state) == text
