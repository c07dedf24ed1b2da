"""The rules of how a request tells the home: a broken one is found, and no valid request is."""

from openai import BadRequestError
import pytest

from demo.model_server import HomeHistory

from .model_talk import assistant, called, result, user


def said(told, text="hello"):
    """Return a message that tells this of the home."""
    return user(f"[CONTEXT: time: now; {told}]\n\n{text}")


def listed(*states):
    return said(f"states: Kitchen: {', '.join(states)}")


def changed(*states):
    return said(f"states changed: Kitchen: {', '.join(states)}")


@pytest.fixture
def home(server):
    """A home whose lamp was off, then on, then gone, then off, and whose meter counted from 1 to 3."""
    server.change(strict=True)
    server.home = HomeHistory()
    for name, state in (("Lamp", "off"), ("Meter", "1"), ("Meter", "2"), ("Lamp", "on"), ("Lamp", ""), ("Meter", "3")):
        server.home.note(name, state)
    server.home.note("Lamp", "off")
    return server.home


def conversation(messages):
    """Return the messages with an answer before each of the user's, and a question in the end."""
    answered = [
        part for each in messages for part in ([assistant("Hello!"), each] if each["role"] == "user" else [each])
    ]
    return [*answered[1:], *([] if messages[-1]["role"] == "user" else [assistant("Done."), user("hello")])]


def rules(server):
    """Return the rules that the newest request breaks."""
    return [each.rule for each in server.requests[-1].violations]


@pytest.mark.parametrize(
    "messages",
    [
        (listed("Lamp=off", "Meter=3"),),
        (listed("Lamp=off", "Meter=1"), changed("Meter=2"), changed("Lamp=on", "Meter=3"), changed("Lamp=off")),
        (listed("Lamp=on", "Meter=3"), said("states changed: no longer there: Lamp"), changed("Lamp=off")),
        (listed("Lamp=off", "Meter=2"), said("states changed: more changed: Kitchen 1")),
        (listed("Lamp=off", "Meter=2"), said("states changed: 1")),
        (user("hello"),),
        (
            listed("Meter=3", "Lamp=on"),
            called("c1", "intent__HassTurnOff", name="Lamp"),
            result("c1", {"result": "ok"}),
        ),
    ],
    ids=[
        "list",
        "changes",
        "one that was gone",
        "more has changed",
        "some have changed",
        "nothing",
        "what a call has switched",
    ],
)
async def test_home_may_be_told_as_it_was(home, server, ask, messages):
    await ask(*conversation(messages))
    assert rules(server) == []


@pytest.mark.parametrize(
    ("messages", "broken"),
    [
        ((listed("Meter=3"), changed("Meter=2"), changed("Meter=3")), "states_in_order"),
        ((listed("Meter=1"), listed("Meter=4"), changed("Meter=3")), "states_in_order"),
        ((listed("Meter=3"), listed("Door=open"), said("states changed: 1")), "states_in_order"),
        ((listed("Lamp=off", "Meter=2"),), "states_current"),
        ((listed("Meter=2"), said("states changed: more changed: Hall 1")), "states_current"),
        ((listed("Meter=2"), user("hello")), "states_current"),
    ],
    ids=["older later", "never so", "never there", "not so any more", "changed elsewhere", "change not told"],
)
async def test_home_may_not_be_told_as_it_was_not(home, server, ask, messages, broken):
    with pytest.raises(BadRequestError, match=broken):
        await ask(*conversation(messages))
    assert rules(server) == [broken]


async def test_while_tools_run_the_home_may_have_changed_since_it_was_told(home, server, ask):
    with pytest.raises(BadRequestError, match="states_current"):
        await ask(listed("Meter=2"))
    await ask(listed("Meter=2"), called("c1", "intent__HassTurnOn", name="Lamp"), result("c1", {"result": "on"}))
    assert rules(server) == []


async def test_home_is_told_in_one_place(server, client):
    system = {"role": "system", "content": "Be brief.\n\n## States\nstates: Kitchen: Lamp=off"}
    messages = [system, user("hello"), assistant("Hello!"), listed("Lamp=on")]
    await client.chat.completions.create(model="scripted", messages=messages)
    assert rules(server) == ["states_in_one_place"]

    await client.chat.completions.create(model="scripted", messages=[system, user("hello")])
    assert rules(server) == []
