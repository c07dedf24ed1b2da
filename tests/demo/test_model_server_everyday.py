"""Tests that the scripted model answers everyday sentences by what its request contains, not by their words alone."""

from dataclasses import replace
import json

from demo.model_server.conversation import Call, Conversation, Tool, Turn
from demo.model_server.skills import answer

_OVERVIEW = """Devices by area and domain, name/alias:
Attic/Dachboden: light: Attic lamp/Dachlampe, Desk lamp; cover: Skylight/Dachfenster; climate: Stove; sensor: Attic heat
Cellar/Keller: lock: Cellar door/Kellertür; sensor: Cellar heat
no area: person: Ada; weather: Sky; todo: Errands/Besorgungsliste"""
_STATES = (
    "Attic: Attic lamp=on 60%, Desk lamp=off, Skylight=open, Stove=heat now idle 20 °C set to 19 °C, Attic heat=24 °C"
)
_TOOLS = (
    Tool("x__SwitchOn", "Turns on/opens a device. For locks, this performs a 'lock' action.", {"name": {}}),
    Tool("x__SwitchOff", "Turns off/closes a device. For locks, this performs an 'unlock' action.", {"name": {}}),
    Tool("x__Glow", "Sets a light", {"name": {}, "brightness": {}}),
    Tool("x__Warm", "Sets the temperature of a climate device", {"name": {}, "temperature": {}}),
    Tool("x__Append", "Add item to a list", {"item": {}, "name": {}}),
    Tool("x__Read", "Items of a list", {"which": {"enum": ["Errands"]}}),
    Tool("windowed_conversation__get_states", "States"),
)


def ask(said, states=f"{_STATES} | Cellar: Cellar door=locked, Cellar heat=12 °C | no area: Ada=home", **context):
    """Return the answer to a sentence in a home with these states."""
    facts = "; ".join(f"{name}: {value}" for name, value in {"time": "Monday 2026-11-23 08:00", **context}.items())
    turns = (Turn("system", _OVERVIEW), Turn("user", f"[CONTEXT: {facts}; states: {states}]\n\n{said}"))
    return answer(Conversation(turns, _TOOLS))


def get_call(said, **fields):
    """Return the tool and the arguments of the only call that answers a sentence."""
    (call,) = ask(said, **fields).calls
    return call.name, dict(call.arguments)


def test_a_question_is_answered_from_the_states_in_the_request():
    opened = ask("did anyone leave something open?").text
    closed = ask("did anyone leave something open?", states=_STATES.replace("Skylight=open", "Skylight=closed")).text
    assert "the Skylight is open" in opened
    assert closed != opened
    assert "Skylight" not in closed


def test_a_statement_about_a_state_is_no_command():
    assert not ask("I think the desk lamp is on").calls


def test_a_state_that_the_request_does_not_have_is_looked_up_once():
    asked = get_call("Ist die Kellertür abgeschlossen?", states=_STATES)
    assert asked == ("windowed_conversation__get_states", {"names": ["Cellar door"]})


def test_a_command_calls_the_tool_whose_description_or_schema_fits(subtests):
    for said, expected in {
        "could you unlock the cellar door": ("x__SwitchOff", {"name": "Cellar door"}),
        "Schließ die Kellertür auf": ("x__SwitchOff", {"name": "Cellar door"}),
        "close the skylight please": ("x__SwitchOff", {"name": "Skylight"}),
        "Mach das Dachfenster zu": ("x__SwitchOff", {"name": "Skylight"}),
        "dim the attic lamp to 20 percent": ("x__Glow", {"name": "Attic lamp", "brightness": 20}),
        "make the attic lamp brighter": ("x__Glow", {"name": "Attic lamp", "brightness": 80}),
        "I'm cold": ("x__Warm", {"name": "Stove", "temperature": 20}),
        "Mir ist zu warm": ("x__Warm", {"name": "Stove", "temperature": 18}),
        "put stamps on the errands list": ("x__Append", {"item": "stamps", "name": "Errands"}),
        "Was steht auf der Besorgungsliste?": ("x__Read", {"which": "Errands"}),
    }.items():
        with subtests.test(said=said):
            assert get_call(said) == expected


def test_a_command_without_a_tool_that_fits_is_not_claimed_to_be_done():
    conversation = Conversation((Turn("system", _OVERVIEW), Turn("user", "unlock the cellar door")), ())
    assert answer(conversation).text.startswith("I am a scripted model and know only")


def test_the_result_of_a_tool_decides_what_is_said():
    said = (Turn("system", _OVERVIEW), Turn("user", "Schließ die Kellertür auf"))
    called = Turn("assistant", "", (Call("x__SwitchOff", {"name": "Cellar door"}, "1"),))
    done, refused = ({"success": True}, {"error": "ask", "error_text": "The person has to say yes."})
    texts = [
        answer(Conversation((*said, called, Turn("tool", json.dumps(result), call_id="1")), _TOOLS)).text
        for result in (done, refused)
    ]
    assert texts == ["Kellertür ist jetzt aufgeschlossen.", "Das ging nicht: The person has to say yes."]


def test_it_is_what_was_spoken_of_last():
    earlier = (Turn("user", "is the attic lamp on?"), Turn("assistant", "Yes, the Attic lamp is on."))
    turns = (Turn("system", _OVERVIEW), *earlier, Turn("user", "turn it off again"))
    assert [dict(call.arguments) for call in answer(Conversation(turns, _TOOLS)).calls] == [{"name": "Attic lamp"}]


def test_the_answer_to_a_question_back_completes_the_command():
    earlier = (Turn("user", "it's too dark"), Turn("assistant", "In which room?"))
    said = Turn("user", f"[CONTEXT: time: Monday; states: {_STATES}]\n\nin the attic")
    (call,) = answer(Conversation((Turn("system", _OVERVIEW), *earlier, said), _TOOLS)).calls
    assert dict(call.arguments) == {"name": "Attic lamp", "brightness": 80}


def test_a_fact_is_found_in_recalled_lines_and_only_there():
    question = "when does Emma have swimming?"
    memory = '2026-11-23 Ada: "Emma has swimming on Tuesday"'
    said = Turn("user", f"[CONTEXT: time: Monday 2026-11-23 08:00; memory, quoted: {memory}]\n\n{question}")
    recalled = answer(Conversation((said,)))
    unknown = answer(Conversation((replace(said, text=question),)))
    assert (recalled.text, unknown.text) == ("You told me: Emma has swimming on Tuesday.", "I do not know when.")
