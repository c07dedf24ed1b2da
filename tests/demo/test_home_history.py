"""Tests for the rules for states in a request: each violation is detected, and valid requests are accepted."""

from openai import BadRequestError
import pytest

from demo.model_server import HomeHistory

from .model_talk import assistant, called, result, user


def said(told, text="hello"):
    """Return a user message whose context line contains `told`."""
    return user(f"[CONTEXT: time: now; {told}]\n\n{text}")


@pytest.fixture
def home(server):
    """Return the history of a home with a lamp that is now off, a meter and a door."""
    server.change(strict=True)
    server.home_history = HomeHistory()
    for name, state in (("Lamp", "on 60%"), ("Meter", "3 W"), ("Door", "closed"), ("Gone", "on"), ("Gone", "")):
        server.home_history.note(name, state, name.lower())
    server.home_history.note("Lamp", "off", "lamp")
    return server.home_history


def rules(server):
    """Return the names of the rules that the newest request violates."""
    return [each.rule for each in server.requests[-1].violations]


@pytest.mark.parametrize(
    "messages",
    [
        (said("states: Kitchen: Lamp=off (changed), Meter=3 W | rest door closed"),),
        (said("states: Kitchen: Lamp=off | not listed: 1 measurements | rest door closed"),),
        (said("states: not listed: 3 entities"),),
        (user("hello"), assistant("Hi."), said('memory, quoted: 2026-11-20 Ada: "tea"')),
        (
            said("states: Kitchen: Lamp=on | rest door closed"),
            called("c1", "HassTurnOff"),
            result("c1", {"result": "ok"}),
        ),
        (user("hello"),),
    ],
    ids=["listed", "counted", "only counted", "memory", "while tools run", "nothing"],
)
async def test_newest_message_may_tell_the_home_as_it_is(home, server, ask, messages):
    await ask(*messages)
    assert rules(server) == []


@pytest.mark.parametrize(
    ("messages", "broken"),
    [
        ((said("states: Kitchen: Lamp=on 60% | not listed: 1 meter | rest door closed"),), "states_current"),
        ((said("states: Kitchen: Gone=on, Lamp=off, Meter=3 W | rest door closed"),), "states_current"),
        ((said("states: Kitchen: Meter=3 W | rest door closed"),), "states_rest"),
        ((said("states: Kitchen: Meter=3 W | not listed: 9 blind | rest door/lamp closed"),), "states_rest"),
        (
            (said("states: rest door closed, lamp off | not listed: 1 measurements"), assistant("Hi."), user("hello")),
            "states_once",
        ),
        ((said('memory, quoted: 2026-11-20 Ada: "tea"'), assistant("Hi."), user("hello")), "states_once"),
    ],
    ids=["not so", "not there", "rest not so", "hidden among others", "older states", "older memory"],
)
async def test_home_may_not_be_told_as_it_is_not(home, server, ask, messages, broken):
    with pytest.raises(BadRequestError, match=broken):
        await ask(*messages)
    assert rules(server) == [broken]


async def test_home_is_told_in_one_place(server, client):
    system = {"role": "system", "content": "Be brief.\n\n## States\nKitchen: Lamp=off"}
    await client.chat.completions.create(model="scripted", messages=[system, said("states: Kitchen: Lamp=on")])
    assert rules(server) == ["states_once"]

    await client.chat.completions.create(model="scripted", messages=[system, user("hello")])
    assert rules(server) == []
