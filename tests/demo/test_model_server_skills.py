"""The scripted model's answers and calls, over real HTTP with the real SDK."""

import json

import pytest

from demo.model_server import WHAT_TO_TRY

from .model_talk import TOOLS, assistant, called, result, user

LIVE_CONTEXT = (
    "Live Context: An overview of the areas and the devices in this smart home:\n"
    "- names: Kitchen light, Big light\n  domain: light\n  state: '{}'\n  areas: Kitchen\n"
    "  attributes:\n    brightness: '128'\n"
)
ATTIC = "[CONTEXT: time: Monday 2026-11-23 08:00; speaker: Eve; area: Attic]\n\n"


def light(state):
    return {"result": LIVE_CONTEXT.format(state)}


def wanted(heard):
    """Return the calls of an answer in which each is in fragments, as name and arguments."""
    names = [call.function.name for call in heard.calls if call.function.name]
    fragments = [""] * len(names)
    for call in heard.calls:
        fragments[call.index] += call.function.arguments or ""
    return [(name, json.loads(text)) for name, text in zip(names, fragments, strict=True)]


async def test_a_name_told_in_the_request_is_known(ask):
    heard = await ask("my name is Ada", assistant("Nice to meet you, Ada."), "what is my name?")
    assert heard.text == "Your name is Ada."


async def test_a_name_told_in_another_request_is_unknown(ask):
    await ask("my name is Ada")
    heard = await ask("what is my name?")
    assert heard.text == "I do not know your name."


async def test_the_newest_name_counts(ask):
    heard = await ask("my name is Ada", assistant("Hi."), "my name is Bea", assistant("Hi."), "what's my name")
    assert heard.text == "Your name is Bea."


async def test_facts_are_summarized_and_known_from_the_summary(ask):
    told = ("my name is Ada", assistant("Hi."), "remember that the pin is 12", assistant("Yes."))
    earlier = "Keep what matters of your earlier summary: You told me: my name is Bea; remember that the car is red."
    summary = await ask(*told, f"[Summarize the conversation above for yourself: it is about to be removed. {earlier}]")
    assert summary.text == "You told me: my name is Ada; remember that the pin is 12; remember that the car is red."
    asked = "[What was said before, in short?]"
    assert (await ask(asked, assistant(summary.text), "what is my name?")).text == "Your name is Ada."
    assert (await ask(asked, assistant(summary.text), "what is the car?")).text == "The car is red."


async def test_a_summary_keeps_to_the_words(ask):
    told = ("my name is Ada", assistant("Hi."), "remember that the pin is 12", assistant("Yes."))
    summary = await ask(*told, "[Summarize the conversation above for yourself, in at most 10 words.]")
    assert summary.text == "You told me: my name is Ada."


async def test_a_summary_of_nothing_is_none(ask):
    summary = await ask("order pizza", assistant("Which size?"), "[Summarize the conversation above for yourself.]")
    assert summary.text == "Nothing of importance."


async def test_a_name_that_only_the_assistant_said_is_unknown(ask):
    heard = await ask("hello", assistant("my name is Ada"), "what is my name?")
    assert heard.text == "I do not know your name."


async def test_the_context_line_is_not_part_of_what_was_said(ask):
    heard = await ask(f"{ATTIC}my name is Ada", assistant("Hi."), f"{ATTIC}what is my name?")
    assert heard.text == "Your name is Ada."


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


async def test_a_fact_is_remembered(ask):
    told = "Remember that the wifi password is swordfish."
    heard = await ask(told, assistant("Yes."), "what is the WiFi password?")
    assert heard.text == "The WiFi password is swordfish."


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


@pytest.mark.parametrize("offer", [{}, {"tools": TOOLS, "tool_choice": "none"}], ids=["no_tools", "choice_of_none"])
async def test_a_tool_that_is_not_offered_is_not_called(client, offer):
    answer = await client.chat.completions.create(
        model="scripted", messages=[user("switch on the kitchen light")], **offer
    )
    assert answer.choices[0].message.content == "I have no tool for that."


DONE = {"response_type": "action_done", "speech": {}, "data": {"success": [{"name": "x"}], "failed": []}}
NOT_FOUND = {"error": "MatchFailedError", "error_text": "No entities matched the name"}
CHECK = "is the kitchen light on? if not, switch it on"
LOOKED = called("a", "homeassistant__GetLiveContext", name="kitchen light")


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


async def test_a_light_that_is_off_is_switched_on_after_a_look(ask):
    heard = await ask(CHECK, LOOKED, result("a", light("off")))
    assert wanted(heard) == [("intent__HassTurnOn", {"name": "kitchen light"})]


async def test_a_light_that_is_on_is_left_on_after_a_look(ask):
    heard = await ask(CHECK, LOOKED, result("a", light("on")))
    assert heard.text == "The kitchen light is already on."


async def test_a_look_that_fails_is_told(ask):
    heard = await ask(CHECK, LOOKED, result("a", {"error": "No exposed entities matched"}))
    assert heard.text == "I could not look: No exposed entities matched."


async def test_the_second_round_of_results_is_told(ask):
    switched = called("b", "intent__HassTurnOn", name="kitchen light")
    heard = await ask(CHECK, LOOKED, result("a", light("off")), switched, result("b", DONE))
    assert heard.text == "Done, the kitchen light is on."


async def test_results_of_an_earlier_exchange_do_not_answer_the_newest(ask):
    heard = await ask(CHECK, LOOKED, result("a", light("on")), assistant("It is on."), CHECK)
    assert wanted(heard) == [("homeassistant__GetLiveContext", {"name": "kitchen light"})]


@pytest.mark.parametrize(
    ("said", "tool", "value", "answer"),
    [
        (
            "tell me whether the kitchen light is on",
            "homeassistant__GetLiveContext",
            light("on"),
            "The kitchen light is on.",
        ),
        ("which devices are on?", "homeassistant__GetLiveContext", light("on"), "These are on: Kitchen light."),
        ("which devices are on?", "homeassistant__GetLiveContext", light("off"), "Nothing is on."),
        ("look at the clock", "llm__GetDateTime", {"time": "13:58:04"}, "The clock says 13:58."),
    ],
)
async def test_what_a_tool_read_is_told(ask, said, tool, value, answer):
    heard = await ask(said, called("a", tool), result("a", value))
    assert heard.text == answer


async def test_quietly_says_nothing_after_the_tools(ask):
    call = called("a", "intent__HassTurnOn", name="lamp")
    heard = await ask("quietly switch on the lamp", call, result("a", DONE))
    assert heard.text == ""
    assert heard.calls == []
    assert heard.finish_reasons == ["stop"]


async def test_one_moment_is_said_before_the_call(ask):
    heard = await ask("say one moment, then switch on the lamp")
    assert heard.text == "One moment. "
    assert wanted(heard) == [("intent__HassTurnOn", {"name": "lamp"})]


async def test_thinking_first_comes_before_the_call(ask):
    heard = await ask("think first, then switch on the lamp")
    assert heard.extra("reasoning_content").startswith("The user wants me to think first.")
    assert wanted(heard) == [("intent__HassTurnOn", {"name": "lamp"})]


async def test_ordering_pizza_asks_back(ask):
    assert (await ask("order pizza")).text == "Gladly. Which size would you like?"


async def test_the_answer_to_its_question_is_used(ask):
    heard = await ask("order pizza", assistant("Gladly. Which size would you like?"), "a Large one, please")
    assert heard.text == "Your large pizza is on its way."


async def test_a_size_without_a_question_is_just_a_word(ask):
    assert (await ask("a large one")).text.startswith("I am a scripted model")


@pytest.mark.parametrize(("said", "words"), [("tell me a story", 300), ("tell me a story about tea in 77 words", 77)])
async def test_a_story_is_long_and_comes_word_by_word(ask, said, words):
    heard = await ask(said)
    assert len(heard.text.split()) == words
    assert sum(bool(delta.content) for delta in heard.deltas) == words


async def test_thinking_is_apart_from_the_text(ask):
    heard = await ask("think about pizza")
    assert "what I know about pizza" in heard.extra("reasoning_content")
    assert heard.text == "I have thought about pizza, and there is much to like."


async def test_thinking_out_loud_is_in_the_text(ask):
    heard = await ask("think out loud about pizza")
    assert heard.text.startswith("<think>The user wants")
    assert heard.text.endswith("</think>\n\nI have thought about pizza out loud.")


async def test_it_counts_the_messages_that_it_was_sent(ask):
    heard = await ask("hello", assistant("Hello."), "how many messages do you see?")
    assert heard.text == "I was sent 4 messages, 2 of them yours."


async def test_it_tells_the_oldest_message_that_it_was_sent(ask):
    heard = await ask("hello there", assistant("Hello."), "what did I say first?")
    assert heard.text == "The oldest thing I can see is: hello there"


@pytest.mark.parametrize("said", ["", "  ", "Wie spät ist es?", "\U0001f40c", "a" * 100_000])
async def test_anything_else_gets_a_friendly_answer(ask, said):
    assert (await ask(said)).text.startswith("I am a scripted model")


async def test_what_can_you_do_lists_the_phrases(ask):
    assert '"my name is Ada"' in (await ask("what can you do?")).text


async def test_text_parts_are_read(ask):
    heard = await ask({"role": "user", "content": [{"type": "text", "text": "my name is Ada"}]})
    assert heard.text == "Nice to meet you, Ada."


async def test_an_answer_that_is_not_streamed_is_the_same(client):
    answer = await client.chat.completions.create(model="scripted", messages=[user("switch on the lamp")], tools=TOOLS)
    call = answer.choices[0].message.tool_calls[0]
    assert (call.function.name, json.loads(call.function.arguments)) == ("intent__HassTurnOn", {"name": "lamp"})
    assert answer.choices[0].finish_reason == "tool_calls"
    assert answer.usage.completion_tokens > 0


@pytest.mark.parametrize("phrase", [phrase for phrase, _ in WHAT_TO_TRY if not phrase.startswith("fail")])
async def test_every_phrase_of_the_table_is_understood(ask, phrase):
    heard = await ask("order pizza", assistant("Gladly. Which size would you like?"), phrase)
    assert heard.calls or not heard.text.startswith("I am a scripted model and know only")


STATES = "states: Kitchen: kitchen light=on 60%, Door=closed (changed) | rest off, closed"
MORE = "states: Kitchen: kitchen light=on 60% | not listed: 3 light on, 40 measurements | rest off, closed"
ROOMS = "states: Kitchen: Kitchen temperature=21 °C, Kitchen light=on | Hall: Hall window=open | rest off, locked"
OVERVIEW = "Be brief.\n\n- names: hall light\n  domain: light\n  areas: Hall\n- names: Kitchen light\n  domain: light\n"


@pytest.mark.parametrize(
    ("told", "question", "answer"),
    [
        (STATES, "tell me whether the kitchen light is on", "The kitchen light is on 60%."),
        (STATES, "is the hall light on?", "The hall light is off."),
        (STATES, "which devices are on?", "These are on: kitchen light."),
        (STATES, "is the Door open?", "The Door is closed."),
        (STATES, "make sure the kitchen light is on", "The kitchen light is already on."),
        (STATES, "is everything closed and off?", "These are not: kitchen light."),
        (ROOMS, "what is the temperature in the kitchen?", "The temperature in the kitchen is 21 °C."),
        (ROOMS, "which lights are on?", "These are on: Kitchen light."),
        (ROOMS, "did anyone leave a light on in the hall?", "Nothing is on."),
        (ROOMS, "which windows are open?", "These are open: Hall window."),
        (MORE, "which windows are open?", "Nothing is open."),
    ],
)
async def test_question_that_the_states_answer_needs_no_tool(ask, told, question, answer):
    heard = await ask({"role": "system", "content": OVERVIEW}, user(f"[CONTEXT: time: now; {told}]\n\n{question}"))

    assert (heard.text, heard.calls) == (answer, [])


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
async def test_question_that_the_states_leave_open_needs_a_tool(ask, told, question):
    heard = await ask({"role": "system", "content": OVERVIEW}, user(f"[CONTEXT: time: now; {told}]\n\n{question}"))

    assert [name for name, _ in wanted(heard)] == ["homeassistant__GetLiveContext"]


async def test_short_question_asks_the_same_of_an_area(ask):
    context = f"[CONTEXT: time: now; {ROOMS}]\n\n"
    heard = await ask("which windows are open?", assistant("One."), f"{context}and in the hall?")

    assert (heard.text, heard.calls) == ("These are open: Hall window.", [])


async def test_states_in_the_system_prompt_are_known(client):
    system = {"role": "system", "content": f"Be brief.\n\n## Time\nnow\n\n## States\n{STATES[8:]}\n\n## Memory\nnone"}
    answer = await client.chat.completions.create(model="scripted", messages=[system, user("is the Door open?")])

    assert answer.choices[0].message.content == "The Door is closed."


@pytest.mark.parametrize(
    ("question", "arguments", "found", "answer"),
    [
        (
            "what is the temperature in the kitchen?",
            {"area": "kitchen", "domain": "sensor"},
            "- names: Kitchen humidity\n  state: '60'\n- names: Kitchen temperature\n  state: '21.3'\n",
            "The temperature in the kitchen is 21.3.",
        ),
        (
            "which lights are on in the kitchen?",
            {"domain": "light", "area": "kitchen"},
            "- names: Kitchen light\n  state: 'on'\n",
            "These are on: Kitchen light.",
        ),
        ("which lights are on?", {"domain": "light"}, "- names: Hall light\n  state: 'off'\n", "Nothing is on."),
    ],
)
async def test_look_has_the_filters_that_the_tool_has(ask, question, arguments, found, answer):
    tool = "homeassistant__GetLiveContext"
    assert wanted(await ask(question)) == [(tool, arguments)]
    heard = await ask(question, called("c1", tool, **arguments), result("c1", {"result": found}))
    assert (heard.text, heard.calls) == (answer, [])
