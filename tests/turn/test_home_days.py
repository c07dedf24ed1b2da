"""Random days: what a request says of the home is how it is, whatever became of the conversation meanwhile."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import count as counted
import json
from typing import Any

from hypothesis import given, settings, strategies as st

from custom_components.windowed_conversation.turn.home import EntityState, Home, Limits, held, listing, tell
from custom_components.windowed_conversation.turn.noted import noted
from custom_components.windowed_conversation.window import (
    EstimatedCounter,
    Message,
    Told,
    ToolCall,
    Window,
    WindowPolicy,
)
from custom_components.windowed_conversation.window.codecs import dump_snapshot, load_snapshot

tokens_of = EstimatedCounter().count
ROOMY, TIGHT = Limits(100_000, 100_000), Limits(60, 20)
# A result is long enough for a stub.
NOTE = "Names and states are data. " * 5
EXCLUDED = frozenset({"left out"})
STATES = ["on", "off", "10%"]
KEYS = [f"light.{letter}" for letter in "abcdef"]

_keys = st.sampled_from(KEYS)
changes = st.lists(
    st.tuples(_keys, st.sampled_from([*STATES, "gone", "hidden", "renamed", "moved"])),
    max_size=4,
)
# What a tool does: looks at some entities, looks as core's does, or switches one: at once, later, or not at all.
tools = st.sampled_from(["look", "look", "core looks", "at once", "late", "never"])
tool_calls = st.lists(st.tuples(tools, _keys, st.sampled_from(STATES), changes), max_size=3)
events = st.sampled_from(["", "", "", "restart", "fork", "other", "keep", "import", "reload", "abort", "broken off"])
tags = st.sampled_from([(), (), ("important",), ("ephemeral",), ("left out",)])
turns = st.tuples(changes, events, st.integers(0, 300), tool_calls, tags)
policies = st.builds(
    WindowPolicy,
    st.integers(100, 2000),
    st.none() | st.floats(0, 0.9),
    tool_results=st.sampled_from(["stub", "keep"]),
    max_tool_turns=st.none() | st.integers(1, 3),
)


def believed(messages: Iterable[Message]) -> dict[str, str]:
    """Return the states by name as a model reads them: what stands later counts."""
    states: dict[str, str] = {}
    for message in messages:
        if message.role == "user":
            _read(message.content[1:].partition("]")[0].partition(": ")[2], states)
        elif message.name in ("look", "core looks") and message.content.startswith("{"):
            _read(json.loads(message.content)["states"], states)
        for call in message.tool_calls:
            states |= {str(call.arguments["name"]): str(call.arguments["state"])} if "state" in call.arguments else {}
    return states


def _read(line: str, states: dict[str, str]) -> None:
    for group in line.split(" | "):
        area, _, listed = group.partition(": ")
        for each in listed.split(", "):
            name, is_state, state = each.partition("=")
            if area == "no longer there":
                states.pop(name, None)
            elif is_state:
                states[name] = state


@dataclass
class Day:
    """A home, and conversations about it, of which one goes on."""

    windows: list[Window]
    limits: Limits
    entities: dict[str, EntityState] = field(default_factory=dict)
    hidden: dict[str, EntityState] = field(default_factory=dict)
    kept: dict[str, Any] | None = None
    late: list[tuple[str, str]] = field(default_factory=list)
    numbers: Any = field(default_factory=counted)

    @property
    def window(self) -> Window:
        """The conversation that goes on."""
        return self.windows[0]

    def change(self, *changed: tuple[str, str]) -> None:
        """Change the state of entities, rename, move or remove them, or hide them; a state shows them again."""
        for key, what in changed:
            number = next(self.numbers)
            entity = self.entities.pop(key, None) or self.hidden.pop(key, None) or EntityState("Hall", f"{key} 0", "on")
            area, name, state = entity.area, entity.name, entity.state
            if what == "hidden":
                self.hidden[key] = entity
            elif what != "gone":
                name = f"{key} {number}" if what == "renamed" else name
                area = f"Area {number}" if what == "moved" else area
                self.entities[key] = EntityState(area, name, what if what in STATES else state, number)

    def happen(self, event: str) -> None:
        """Have something become of the conversations."""
        window = self.window
        if event in ("restart", "fork", "keep"):
            dumped = dump_snapshot(window.snapshot())
            self.kept = dumped if event == "keep" else self.kept
            self.windows[: event == "restart"] = [loaded(dumped, window.policy)]
        elif event == "import" and self.kept is not None:
            self.windows.insert(0, loaded(self.kept, window.policy))
        elif event == "other":
            self.windows.reverse()
        elif event == "reload":
            window.set_policy(WindowPolicy(window.policy.history_tokens // 2 + 60))

    def ask(self, text: str) -> dict[str, str]:
        """Open a turn, and return what the window says of the home then."""
        window = self.window
        known = held(window.exchanges(), window.would_stay(len(text) + 200), EXCLUDED)
        home = Home(self.entities, self.hidden.__contains__)
        telling = tell(home, known, "", self.limits, tokens_of)
        window.open(f"[{telling.text}]{text}", told=telling.told(1), anew=telling.anew)
        return {**({} if telling.anew else known.states), **telling.states}

    def use(self, known: dict[str, str], tool: str, key: str, state: str) -> None:
        """Have a tool called, and note its result."""
        entity, call_id = self.entities.get(key), str(next(self.numbers))
        looks = tool in ("look", "core looks")
        acts = entity is not None and not looks
        said = {"name": entity.name, "state": state} if acts and entity else {}
        if tool == "at once" and acts:
            self.change((key, state))
        self.late += [(key, state)] if tool == "late" and acts else []
        asked = {each: self.entities[each] for each in KEYS[: KEYS.index(key) + 1] if each in self.entities}
        looked = listing(asked, "", 10_000, tokens_of)
        text = looked.text if looks else ""
        content = json.dumps({"states": text, "note": NOTE})
        listed = looked.states.keys() if tool == "look" else ()
        states = noted(self.entities, known, [key] if acts else [], listed)
        known |= states
        span = (12, 12 + len(text), looked.tokens) if tool == "look" and text else (0, 0, 0)
        self.window.add(Message.assistant(tool_calls=(ToolCall(call_id, tool, said),)))
        self.window.add(Message.tool(call_id, tool, content, told=Told(*span, states) if states else None))

    def end(self, event: str, tags: Iterable[str]) -> None:
        """End the turn, and have happen what was late."""
        self.window.tag(*tags)
        if event == "broken off":
            self.window.close_incomplete("I w")
        else:
            self.window.add(Message.assistant("Yes."))
            self.window.close()
        self.change(*((key, state) for key, state in self.late if key in self.entities))
        self.late.clear()


def loaded(dumped: Any, policy: WindowPolicy) -> Window:
    """Return the window that a file gives back."""
    window = Window("again", policy, EstimatedCounter())
    window.restore(load_snapshot(dumped))
    return window


@settings(deadline=None, max_examples=150)
@given(st.lists(turns, min_size=1, max_size=12), policies, st.sampled_from([ROOMY, TIGHT]))
def test_what_a_request_says_is_how_the_home_is(turns_of_day: list[Any], policy: WindowPolicy, limits: Limits) -> None:
    day = Day([Window("day", policy, EstimatedCounter())], limits)
    for changed, event, length, calls, tagged in turns_of_day:
        day.change(*changed)
        day.happen(event)
        if event == "abort":
            day.ask("x" * length)
            day.window.abort()
        known = day.ask("x" * length)
        messages = day.window.messages(exclude=EXCLUDED)
        states, home = believed(messages), {each.name: each.state for each in day.entities.values()}

        is_cut = limits is TIGHT and "changed" in messages[-1].content
        assert is_cut or {name: state for name, state in states.items() if home.get(name, state) != state} == {}
        assert limits is TIGHT or home.keys() <= states.keys()
        texts = "".join(message.content for message in messages if message.name != "core looks")
        assert [entity.name for entity in day.hidden.values() if f"{entity.name}=" in texts] == []
        for tool, key, state, meanwhile in calls:
            day.use(known, tool, key, state)
            day.change(*(each for each in meanwhile if each[1] in STATES))
        day.end(event, tagged)
