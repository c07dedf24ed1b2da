"""Tests that a conversation continues when it switches between providers."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from itertools import cycle, islice, permutations
from typing import Any

import pytest

from custom_components.windowed_conversation.providers.events import ModelSettings
from custom_components.windowed_conversation.providers.models import Caching, Effort, ModelProfile, ReasoningStyle
from custom_components.windowed_conversation.turn.model import Question
from custom_components.windowed_conversation.turn.state import Turn
from custom_components.windowed_conversation.window import Window, WindowPolicy
from demo.model_server import Answer, ModelServer, call, words
from tests.providers.wires import ALL_WIRES

from .conftest import Take
from .world import Ear, Home, Tool

FORMATS = tuple(wire.name for wire in ALL_WIRES)

# The reasoning style of the model in each wire format; formats that are not listed do not reason.
UNTHINKING: Mapping[str, ReasoningStyle] = {}
BUDGET_STYLES = {
    "anthropic": ReasoningStyle.BUDGET,
    "gemini": ReasoningStyle.BUDGET,
    "responses": ReasoningStyle.EFFORT,
}
LEVEL_STYLES = {
    "anthropic": ReasoningStyle.ADAPTIVE,
    "gemini": ReasoningStyle.LEVEL,
    "responses": ReasoningStyle.EFFORT,
}

TOLD = (
    ("my name is Anna", "Nice to meet you, Anna."),
    ("remember that the alarm code is 7781", "I will remember that the alarm code is 7781."),
    ("switch on the kitchen light and the bedroom light", "Done, the kitchen light and the bedroom light are on."),
    ("what is my name?", "Your name is Anna."),
    ("is the kitchen light on? if not, switch it on", "The kitchen light is already on."),
    ("switch off the bedroom light", "One moment. Done, the bedroom light is off."),
    ("what is the alarm code?", "The alarm code is 7781."),
    ("remember that the cat is Tom", "I will remember that the cat is Tom."),
    ("is the bedroom light on? if not, switch it on", "Done, the bedroom light is on."),
    ("which devices are on?", "These are on: kitchen light, bedroom light."),
    ("switch off both", "Done."),
    ("what is the cat?", "The cat is Tom."),
    ("which devices are on?", "Nothing is on."),
    ("remember that the alarm code is 1234", "I will remember that the alarm code is 1234."),
    ("switch on the bedroom light and the kitchen light", "Done, the bedroom light and the kitchen light are on."),
    ("what is my name?", "Your name is Anna."),
    ("make sure that the kitchen light is off", "Done, the kitchen light is off."),
    ("what is the alarm code?", "The alarm code is 1234."),
    ("what is the cat?", "The cat is Tom."),
    ("who am I?", "You are Anna."),
)

# The answers that the model server is scripted to give, by the user's input.
SCRIPTS: Mapping[str, tuple[Answer, ...]] = {
    "switch off the bedroom light": (words("One moment. ") + call("HassTurnOff", name="bedroom light"),),
    "switch off both": (
        call("HassTurnOff", name="kitchen light") + call("HassTurnOff", name="bedroom light"),
        words(""),
    ),
}

# Every order of the formats, each with one of the reasoning styles in turn.
ORDERS = tuple(zip(permutations(FORMATS), cycle((LEVEL_STYLES, BUDGET_STYLES, UNTHINKING)), strict=False))

type Asked = Callable[[str], Question]


@dataclass
class ReceiptTools:
    """Adds a unique receipt to each tool result of a home; `receipts` has the receipts in the order of the calls."""

    home: Home
    receipts: list[str] = field(default_factory=list)
    on_call: Callable[[], None] = lambda: None

    @property
    def tools(self) -> Mapping[str, Tool]:
        return {name: self._add_receipt(tool) for name, tool in self.home.tools.items()}

    def _add_receipt(self, tool: Tool) -> Callable[..., Awaitable[Any]]:
        async def act(**arguments: Any) -> Any:
            self.on_call()
            self.receipts.append(f"<receipt {len(self.receipts)}>")
            receipt = self.receipts[-1]
            return {**await tool(**arguments), "receipt": receipt}

        return act


@pytest.fixture
def receipts(home: Home) -> ReceiptTools:
    return ReceiptTools(home)


@pytest.fixture
def reply(receipts: ReceiptTools) -> Ear:
    return Ear(receipts.tools)


@pytest.fixture
def window(window: Window) -> Window:
    """Return a window that keeps everything, including tool results."""
    window.set_policy(WindowPolicy(history_tokens=100_000, tool_results="keep"))
    return window


@pytest.fixture
async def http_clients() -> AsyncIterator[Mapping[str, Any]]:
    """Yield an HTTP client for each wire format."""
    packages = {wire.clients[0] for wire in ALL_WIRES}
    clients = {package: import_module(package).AsyncClient(verify=False) for package in packages}
    yield {wire.name: clients[wire.clients[0]] for wire in ALL_WIRES}
    for client in clients.values():
        await client.aclose()


@pytest.fixture
def asked(
    request: pytest.FixtureRequest, question: Question, http_clients: Mapping[str, Any], model_server: ModelServer
) -> Asked:
    """Return a function that builds the question for a wire format; models reason in the style of the parameter."""
    styles: Mapping[str, ReasoningStyle] = request.param

    providers = {wire.name: wire.connect(model_server.address, http_clients[wire.name]) for wire in ALL_WIRES}
    model_server.change(models=("scripted", "gemini-2.5-flash"))

    def asked(name: str) -> Question:
        style = styles.get(name, ReasoningStyle.NONE)
        # Gemini models without reasoning levels do not require signatures; the server recognizes them by this name
        base = "gemini-2.5-flash" if name == "gemini" and style is not ReasoningStyle.LEVEL else "scripted"
        caching = Caching.BREAKPOINTS if name == "anthropic" else Caching.AUTOMATIC
        model = replace(
            question.model,
            agent_id=name,
            provider=providers[name],
            name=f"{base}+reasoning",
            profile=ModelProfile(reasoning=style, caching=caching),
            settings=ModelSettings(effort=Effort.LOW),
        )
        return replace(question, model=model)

    return asked


def violations(server: ModelServer) -> list[Any]:
    return [(record.format, violation) for record in server.log.records for violation in record.violations]


@pytest.mark.parametrize(("order", "asked"), ORDERS, indirect=["asked"], ids=["-".join(order) for order, _ in ORDERS])
async def test_conversation_goes_on_whoever_answers(
    order: tuple[str, ...], take: Take, asked: Asked, receipts: ReceiptTools, model_server: ModelServer
) -> None:
    outcomes, lost = list[Turn](), list[str]()
    for name, (said, _) in zip(cycle(order), TOLD, strict=False):
        model_server.script(*SCRIPTS.get(said, ()))
        outcomes.append(await take(said, asked=asked(name)))
        sent = model_server.requests[-1].raw.decode()
        lost += [receipt for receipt in receipts.receipts if receipt not in sent]

    assert violations(model_server) == []
    assert [outcome.error for outcome in outcomes] == [None] * len(TOLD)
    assert [outcome.answered_by for outcome in outcomes] == list(islice(cycle(order), len(TOLD)))
    assert [outcome.sent_text for outcome in outcomes] == [answer for _, answer in TOLD]
    assert lost == []


@pytest.mark.parametrize("asked", [BUDGET_STYLES, LEVEL_STYLES], indirect=True, ids=["by amount", "by level"])
@pytest.mark.parametrize("pair", permutations(FORMATS, 2), ids="-".join)
async def test_turn_goes_on_with_another_provider_after_its_tools_ran(
    pair: tuple[str, str], take: Take, asked: Asked, receipts: ReceiptTools, model_server: ModelServer
) -> None:
    first, second = pair
    question = replace(asked(first), fallback_agents=(asked(second).model,))
    await take("my name is Anna", asked=question)
    receipts.on_call = lambda: model_server.fault("503", times=1)

    handed_over = await take("switch on the kitchen light and the bedroom light", asked=question)
    receipts.on_call = lambda: None
    afterwards = await take("switch off the kitchen light, and the bedroom light", asked=question)

    assert violations(model_server) == []
    assert (handed_over.answered_by, afterwards.answered_by) == (second, first)
    assert handed_over.sent_text == "Done, the kitchen light and the bedroom light are on."
    assert afterwards.sent_text == "Done, the kitchen light and the bedroom light are off."
    assert len(receipts.receipts) == 4
