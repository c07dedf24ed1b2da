"""Tests for the scripted model's answers and calls, over real HTTP with OpenAI's SDK."""

import json

import pytest

from demo.model_server import EXAMPLE_PHRASES

from .model_talk import TOOLS, assistant, called, result, user

ATTIC = "[CONTEXT: time: Monday 2026-11-23 08:00; speaker: Eve; area: Attic]\n\n"


def wanted(heard):
    """Return the name and the arguments of each call of an answer, assembled from streamed fragments."""
    names = [call.function.name for call in heard.calls if call.function.name]
    fragments = [""] * len(names)
    for call in heard.calls:
        fragments[call.index] += call.function.arguments or ""
    return [(name, json.loads(text)) for name, text in zip(names, fragments, strict=True)]


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("what time is it where I am?", "It is Monday 2026-11-23 08:00."),
        ("which room am I in?", "You are in the Attic."),
        ("who am I?", "You are Eve."),
        ("repeat my message", f"You wrote: {ATTIC}repeat my message"),
    ],
)
async def test_the_context_line_answers_questions_about_it(ask, question, answer):
    heard = await ask(f"{ATTIC}{question}")
    assert heard.text == answer


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("what time is it?", "I was not told the time."),
        ("which room am I in?", "I was not told which room you are in."),
        ("who am I?", "I do not know who you are."),
        ("what is the wifi password?", "I do not know what the wifi password is."),
    ],
)
async def test_what_it_was_not_told_it_does_not_know(ask, question, answer):
    assert (await ask(question)).text == answer


@pytest.mark.parametrize(
    ("said", "calls"),
    [
        ("please switch on the kitchen light", [("intent__HassTurnOn", {"name": "kitchen light"})]),
        ("I would like the Reading lamp switched off", [("intent__HassTurnOff", {"name": "Reading lamp"})]),
        ("would you mind switching the lamp on?", [("intent__HassTurnOn", {"name": "lamp"})]),
        (
            "switch on the kitchen light, the reading lamp and the fan",
            [("intent__HassTurnOn", {"name": name}) for name in ("kitchen light", "reading lamp", "fan")],
        ),
        (
            "is the kitchen light on? if not, switch it on",
            [("homeassistant__GetLiveContext", {"name": "kitchen light"})],
        ),
        (
            "check the kitchen light and switch it off if it is on",
            [("homeassistant__GetLiveContext", {"name": "kitchen light"})],
        ),
        ("make sure the kitchen light is on", [("homeassistant__GetLiveContext", {"name": "kitchen light"})]),
        ("which devices are on?", [("homeassistant__GetLiveContext", {})]),
        ("look at the clock", [("llm__GetDateTime", {})]),
    ],
)
async def test_a_wish_becomes_calls_of_the_offered_tools(ask, said, calls):
    heard = await ask(said)
    assert wanted(heard) == calls
    assert heard.finish_reasons == ["tool_calls"]
    assert heard.text == ""


async def test_clock_is_read_from_the_context_if_no_tool_has_the_time(client):
    answer = await client.chat.completions.create(
        model="scripted", messages=[user("[CONTEXT: time: Monday 2026-11-23 17:10]\n\nlook at the clock")]
    )
    assert answer.choices[0].message.content == "The clock says 17:10."


@pytest.mark.parametrize("offer", [{}, {"tools": TOOLS, "tool_choice": "none"}], ids=["no_tools", "choice_of_none"])
async def test_a_tool_that_is_not_offered_is_not_called(client, offer):
    answer = await client.chat.completions.create(
        model="scripted", messages=[user("switch on the kitchen light")], **offer
    )
    assert answer.choices[0].message.content == "I have no tool for that."


DONE = {"response_type": "action_done", "speech": {}, "data": {"success": [{"name": "x"}], "failed": []}}
NOT_FOUND = {"error": "MatchFailedError", "error_text": "No entities matched the name"}


@pytest.mark.parametrize(
    ("results", "answer"),
    [
        ([DONE], "Done, the kitchen light is on."),
        ([{"data": DONE, "error": False}], "Done, the kitchen light is on."),
        ([NOT_FOUND], "I could not switch on the kitchen light: No entities matched the name."),
        (
            [{"data": NOT_FOUND, "error": True}],
            "I could not switch on the kitchen light: No entities matched the name.",
        ),
        ([DONE, DONE], "Done, the kitchen light and the kitchen light are on."),
        (
            [DONE, NOT_FOUND],
            "Done, the kitchen light is on. I could not switch on the kitchen light: No entities matched the name.",
        ),
    ],
)
async def test_results_of_tools_are_told(ask, results, answer):
    call = called("a", "intent__HassTurnOn", name="kitchen light")
    calls = [{**call["tool_calls"][0], "id": str(at)} for at in range(len(results))]
    told = [result(str(at), each) for at, each in enumerate(results)]
    heard = await ask("switch on the kitchen light", {**call, "tool_calls": calls}, *told)
    assert heard.text == answer
    assert heard.finish_reasons == ["stop"]


async def test_it_counts_the_messages_that_it_was_sent(ask):
    heard = await ask("hello", assistant("Hello."), "how many messages do you see?")
    assert heard.text == "I was sent 4 messages, 2 of them yours."


@pytest.mark.parametrize("phrase", [phrase for phrase, _ in EXAMPLE_PHRASES if not phrase.startswith("fail")])
async def test_every_phrase_of_the_table_is_understood(ask, phrase):
    heard = await ask("order pizza", assistant("Gladly. Which size would you like?"), phrase)
    assert heard.calls or not heard.text.startswith("I am a scripted model and know only")


@pytest.mark.parametrize("words", [1, 60, 250, 1000])
async def test_story_ends_with_a_whole_sentence(ask, words):
    heard = await ask(f"tell me a story about the sea in {words} words")

    assert heard.text.endswith(".")
    assert len(heard.text.split()) <= max(words, 16)


async def test_newest_exchange_is_told_whoever_answered_it(ask):
    heard = await ask(user("turn on the kitchen light"), assistant("Turned on the light."), user("what did I just do?"))

    assert heard.text == 'You said "turn on the kitchen light", and the answer was "Turned on the light".'


async def test_without_an_earlier_exchange_nothing_was_done(ask):
    assert (await ask("what did I just do?")).text == "You have only just begun to talk to me."


STATES = "states: Kitchen: kitchen light=on 60%, Door=closed (changed) | rest off, closed"
MORE = "states: Kitchen: kitchen light=on 60% | not listed: 3 light on, 40 measurements | rest off, closed"
TWICE = "states: Kitchen: Kitchen light=off, kitchen light=on | rest off"
ROOMS = "states: Kitchen: Kitchen temperature=21 °C, Kitchen light=on | Hall: Hall window=open | rest off, locked"
CORE_LIST = (
    "Be brief.\n\n- names: hall light\n  domain: light\n  areas: Hall\n- names: Kitchen light\n  domain: light\n"
)
OVERVIEW = (
    "Be brief.\nDevices by area and domain, name/alias:\nHall (Ground floor): light: hall light/lamp\n"
    "no area: light: Kitchen light\n\nUse the tools."
)


@pytest.mark.parametrize("overview", [CORE_LIST, OVERVIEW])
@pytest.mark.parametrize(
    ("told", "question", "answer"),
    [
        (STATES, "tell me whether the kitchen light is on", "The kitchen light is on 60%."),
        (STATES, "is the hall light on?", "The hall light is off."),
        (STATES, "which devices are on?", "These are on: kitchen light."),
        (STATES, "is the Door open?", "The Door is closed."),
        ("states: Garage: Garage door=closed | rest off", "is the garage closed?", "The Garage door is closed."),
        (
            "states: Hall: Hall window=closed, Hall window 2=open",
            "is the Hall window open?",
            "The Hall window is closed.",
        ),
        (STATES, "make sure the kitchen light is on", "The kitchen light is already on."),
        (STATES, "is everything closed and off?", "These are not: kitchen light."),
        (ROOMS, "what is the temperature in the kitchen?", "The temperature in the kitchen is 21 °C."),
        (ROOMS, "which lights are on?", "These are on: Kitchen light."),
        (ROOMS, "did anyone leave a light on in the hall?", "Nothing is on."),
        (ROOMS, "which windows are open?", "These are open: Hall window."),
        (MORE, "which windows are open?", "Nothing is open."),
        (TWICE, "which devices are on?", "These are on: Kitchen light."),
    ],
)
async def test_question_that_the_states_answer_needs_no_tool(ask, told, question, answer, overview):
    heard = await ask({"role": "system", "content": overview}, user(f"[CONTEXT: time: now; {told}]\n\n{question}"))

    assert (heard.text, heard.calls) == (answer, [])


@pytest.mark.parametrize("overview", [CORE_LIST, OVERVIEW])
@pytest.mark.parametrize(
    ("told", "question"),
    [
        (STATES, "is the cellar light on?"),
        (MORE, "is the hall light on?"),
        (MORE, "which devices are on?"),
        (MORE, "which lights are on in the hall?"),
        (MORE, "is everything closed and off?"),
        (f"{STATES[:-18]} | not listed: 2 others | rest off", "which windows are open?"),
        (STATES, "what is the temperature in the kitchen?"),
        (STATES, "make sure the hall light is on"),
        (STATES, "look around"),
    ],
)
async def test_question_that_the_states_leave_open_needs_a_tool(ask, told, question, overview):
    heard = await ask({"role": "system", "content": overview}, user(f"[CONTEXT: time: now; {told}]\n\n{question}"))

    assert [name for name, _ in wanted(heard)] == ["homeassistant__GetLiveContext"]
