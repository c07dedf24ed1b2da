"""Tests for the request for the search words of facts and for what they replace, and for what is read of the answer."""

import pytest

from custom_components.windowed_conversation.agents.background.requests import FactNotes, OpenFact, ask_for_search_words
from custom_components.windowed_conversation.providers.errors import DeadlineExceeded, RateLimited
from custom_components.windowed_conversation.turn.attempts import Attempt, Purpose
from custom_components.windowed_conversation.turn.errors import NoSummary
from custom_components.windowed_conversation.turn.limits import DEFAULT_TURN_TIMEOUT
from custom_components.windowed_conversation.turn.model import Question
from demo.model_server import ModelServer, words

FACTS = ["The fuse box is behind the wardrobe", "The vet is Doctor Keller", "Ada sings"]


async def ask(question: Question, turn_timeout: float = DEFAULT_TURN_TIMEOUT) -> tuple[dict[int, str], list[Attempt]]:
    attempts: list[Attempt] = []
    facts = [OpenFact(fact) for fact in FACTS]
    found = await ask_for_search_words(question, facts, ("en", "de"), turn_timeout, attempts.append)
    return {place: notes.search_words for place, notes in found.items()}, attempts


async def test_request_has_the_facts_and_languages_and_nothing_else(
    question: Question, model_server: ModelServer
) -> None:
    model_server.script(words("1: a\n2: b\n3: c"))

    _, (attempt,) = await ask(question)

    body = model_server.requests[-1].body
    system, user = [message["content"] for message in body["messages"]]
    assert (attempt.purpose, "tools" in body) == (Purpose.SEARCH_WORDS, False)
    assert ", in en, de: " in system
    assert user == f"1: {FACTS[0]}\n2: {FACTS[1]}\n3: {FACTS[2]}"


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        (
            "1: power cut, breaker\n2: animal doctor\n3: choir",
            {0: "power cut, breaker", 1: "animal doctor", 2: "choir"},
        ),
        ("Sure:\n\n**1.** power cut\n- 3) choir: songs\n", {0: "power cut", 2: "choir: songs"}),
        ("3: choir\n1: power cut", {0: "power cut", 2: "choir"}),
        ("0: none\n4: none\n999: none\n1: power cut", {0: "power cut"}),
        ("I cannot help with that.", {}),
        ("2:\n1: power cut", {0: "power cut"}),
    ],
    ids=["all", "formatted", "in another order", "numbers of no fact", "no line", "an empty line"],
)
async def test_lines_with_the_number_of_a_fact_are_read(
    question: Question, model_server: ModelServer, answer: str, found: dict[int, str]
) -> None:
    model_server.script(words(answer))

    assert (await ask(question))[0] == found


async def test_earlier_facts_stand_below_the_one_that_may_replace_them(
    question: Question, model_server: ModelServer
) -> None:
    facts = [OpenFact("Ada sings"), OpenFact("The vet is Shah", {31: "The vet is Keller", 30: "The vet is kind"})]

    await ask_for_search_words(question, facts, ("en",), DEFAULT_TURN_TIMEOUT, list[Attempt]().append)

    system, user = [message["content"] for message in model_server.requests[-1].body["messages"]]
    assert "Under some facts stand earlier ones" in system
    assert user == "1: Ada sings\n2: The vet is Shah\n   [31] The vet is Keller\n   [30] The vet is kind"


@pytest.mark.parametrize(
    ("answer", "notes"),
    [
        ("1: animal doctor, replaces 31", FactNotes("animal doctor", 31)),
        ("1: animal doctor; **Replaces [31]**.", FactNotes("animal doctor", 31)),
        ("1: animal doctor, replaces 99", FactNotes("animal doctor")),
        ("1: animal doctor, replaces 31 of them", FactNotes("animal doctor, replaces 31 of them")),
    ],
    ids=["as asked", "formatted", "a fact that was not sent", "within the words"],
)
async def test_fact_replaces_only_one_that_was_sent_with_it(
    question: Question, model_server: ModelServer, answer: str, notes: FactNotes
) -> None:
    model_server.script(words(answer))
    facts = [OpenFact("The vet is Shah", {31: "The vet is Keller"})]

    assert await ask_for_search_words(question, facts, ("en",), DEFAULT_TURN_TIMEOUT, list[Attempt]().append) == {
        0: notes
    }


async def test_answer_without_text_is_an_error(question: Question, model_server: ModelServer) -> None:
    model_server.fault("empty_answer")

    with pytest.raises(NoSummary):
        await ask(question)


async def test_error_of_the_server_is_raised(question: Question, model_server: ModelServer) -> None:
    model_server.fault("429")

    with pytest.raises(RateLimited):
        await ask(question)


async def test_silent_server_is_given_up(question: Question, model_server: ModelServer) -> None:
    model_server.fault("no_answer")

    with pytest.raises(DeadlineExceeded):
        await ask(question, turn_timeout=0.2)
