"""Fixtures: a real Home Assistant with lights, the scripted model server, and an account connected to it."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
import logging
from logging.handlers import BufferingHandler
from pathlib import Path
import sys
from typing import Any, override

from aiohttp import web
from homeassistant import block_async_io
from homeassistant.components import conversation
from homeassistant.components.conversation import ConversationResult
from homeassistant.components.homeassistant.exposed_entities import async_expose_entity
from homeassistant.components.todo.const import DATA_COMPONENT as DATA_TODO, TodoListEntityFeature
from homeassistant.components.todo.entity import TodoItem, TodoListEntity
from homeassistant.config_entries import SOURCE_USER, ConfigSubentryData
from homeassistant.const import (
    CONF_API_KEY,
    CONF_LLM_HASS_API,
    CONF_MODEL,
    CONF_URL,
    EVENT_HOMEASSISTANT_FINAL_WRITE,
)
from homeassistant.core import Context, HomeAssistant
from homeassistant.data_entry_flow import FlowManager, section
from homeassistant.helpers import area_registry as ar, entity_registry as er
from homeassistant.helpers.entity import Entity
from homeassistant.setup import async_setup_component
import pytest
from pytest_homeassistant_custom_component.common import MockConfigEntry

from custom_components.windowed_conversation.agents import store
from custom_components.windowed_conversation.agents.agent import Agent
from custom_components.windowed_conversation.const import (
    CONF_PROVIDER,
    CONF_STATES,
    DOMAIN,
    PROVIDER_NONE,
    PROVIDER_OPENAI_CHAT,
    SUBENTRY_CONVERSATION,
)
from custom_components.windowed_conversation.store import file
from demo.model_server import ModelServer

from .ai_tasks import generate, media, set_up_task  # noqa: F401 - fixtures
from .done_once import cache_setup
from .executor_end import join_before_interrupting
from .flow_texts import missing_texts
from .large_source import add_source  # noqa: F401 - a fixture
from .repair_flows import repairs  # noqa: F401 - a fixture
from .satellite import ask, heard  # noqa: F401 - fixtures
from .store_file import Disk

# The instructions are long enough for a provider to cache them.
LONG = "Always be brief and friendly, and never say what nobody asked for. " * 300
AGENT = "conversation.ada"

DETECTOR = logging.getLogger("homeassistant.util.loop")

# Debug logging makes every test format the integration's debug messages.
logging.getLogger("custom_components").setLevel(logging.DEBUG)
# The test plugin lets each home log fifty messages of its own, and writes them where pytest has them already.
logging.getLogger().setLevel(logging.WARNING)
logging.getLogger().handlers.clear()
# It also has each SQL statement logged. The recorder's thread executes some of them between two tests, when pytest
# captures nothing, and they would appear in the output.
logging.getLogger("sqlalchemy.engine").setLevel(logging.WARNING)

type SayFn = Callable[..., Coroutine[Any, Any, ConversationResult]]
type SayAtOnce = Callable[[str], Coroutine[Any, Any, ConversationResult]]
type Page = Callable[..., Coroutine[Any, Any, str]]
type SetUpFn = Callable[..., Coroutine[Any, Any, MockConfigEntry]]


@pytest.fixture(autouse=True, scope="session")
def _cached_setup() -> Iterator[None]:
    """Cache the parts of the setup that are the same for every home."""
    with cache_setup():
        yield


@pytest.fixture(autouse=True, scope="session")
def _whole_executor_end() -> Iterator[None]:
    """Let the threads of executors end by themselves, however busy the machine is."""
    with join_before_interrupting():
        yield


@pytest.fixture
def store_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the path of the store's file, which is separate for each test.

    The store does not wait for the disk to sync, and a locked file fails quickly.
    """
    monkeypatch.setattr(file, "_SYNCHRONOUS", "OFF")
    monkeypatch.setattr(file, "_LOCK_TIMEOUT_SECONDS", 0.2)
    monkeypatch.setattr(store, "STORAGE_DIR", str(tmp_path))
    return tmp_path / f"{DOMAIN}.db"


@pytest.fixture
def disk(store_path: Path, monkeypatch: pytest.MonkeyPatch) -> Disk:
    """Return access to the store's file from outside the integration, which does not wait while the file is locked."""
    monkeypatch.setattr(file, "_LOCK_TIMEOUT_SECONDS", 0.0)
    return Disk(store_path)


@pytest.fixture(autouse=True)
def _never_blocks(store_path: Path, disable_block_async_io: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Fail the test if Home Assistant's detector reports a blocking call in the event loop, with all checks enabled."""
    monkeypatch.setattr(block_async_io, "_IN_TESTS", False)
    block_async_io.enable()
    # pytest's caplog is not used here, because Home Assistant's test harness would then log all debug messages.
    told = BufferingHandler(sys.maxsize)
    DETECTOR.addHandler(told)
    yield
    DETECTOR.removeHandler(told)
    found = [record.getMessage() for record in told.buffer]
    # The test harness itself uses pkgutil to find its patches of Home Assistant.
    assert [m for m in found if "blocking call" in m and "pkgutil.py" not in m] == []


@pytest.fixture(autouse=True)
def _real_world(_never_blocks: None, enable_custom_integrations: None, socket_enabled: None, idle_clock: None) -> None:
    """Load this integration, let it reach the model server on loopback, and use a clock that ignores computing time."""


@pytest.fixture(autouse=True)
def _flow_text_check(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Fail the test if a form, menu or abort of a flow lacks one of its translations."""
    missing: list[str] = []
    handle_step = FlowManager._async_handle_step

    async def handled(flows: Any, flow: Any, *args: Any, **more: Any) -> Any:
        result = await handle_step(flows, flow, *args, **more)
        missing.extend(missing_texts(result, flow))
        return result

    monkeypatch.setattr(FlowManager, "_async_handle_step", handled)
    yield
    assert missing == []


@asynccontextmanager
async def run_server(answer: Callable[[web.Request], Coroutine[Any, Any, web.Response]]) -> AsyncIterator[str]:
    """Run a server on loopback that answers every request with `answer`, and yield its address."""
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    await runner.cleanup()


@pytest.fixture
async def page() -> AsyncIterator[Page]:
    """Yield a function that starts a server with the same page for every request and returns its address."""
    async with AsyncExitStack() as stack:

        async def page(text: str, content_type: str = "text/html", status: int = 200) -> str:
            async def answer(_request: web.Request) -> web.Response:
                return web.Response(text=text, content_type=content_type, status=status)

            return await stack.enter_async_context(run_server(answer))

        yield page


@pytest.fixture
async def home(hass: HomeAssistant) -> HomeAssistant:
    """Return a Home Assistant with an exposed kitchen light, an exposed hall light, and a cellar light not exposed."""
    for component in ("homeassistant", "conversation", "intent", "assist_pipeline"):
        assert await async_setup_component(hass, component, {})
    lights = {name: {"name": f"{name} light"} for name in ("kitchen", "hall", "cellar")}
    assert await async_setup_component(hass, "input_boolean", {"input_boolean": lights})
    await hass.async_block_till_done()
    for name in lights:
        async_expose_entity(hass, "conversation", f"input_boolean.{name}", name != "cellar")
    return hass


class ShoppingList(TodoListEntity):
    """A to-do list entity that keeps its items in memory."""

    _attr_name = "Shopping list"
    _attr_supported_features = TodoListEntityFeature.CREATE_TODO_ITEM
    entity_id = "todo.shopping_list"

    def __init__(self) -> None:
        self._attr_todo_items = []
        self.on_added: Callable[[], None] = lambda: None

    @property
    def item_names(self) -> list[str | None]:
        """The summaries of the items on the list."""
        return [item.summary for item in self._attr_todo_items or ()]

    def clear(self) -> None:
        """Remove all items from the list."""
        self._attr_todo_items = []

    @override
    async def async_create_todo_item(self, item: TodoItem) -> None:
        self._attr_todo_items = [*(self._attr_todo_items or ()), item]
        self.on_added()


@pytest.fixture
async def shopping(home: HomeAssistant) -> ShoppingList:
    """Return a shopping list entity that is exposed to the agent."""
    shopping = ShoppingList()
    assert await async_setup_component(home, "todo", {})
    await home.data[DATA_TODO].async_add_entities([shopping])
    async_expose_entity(home, "conversation", shopping.entity_id, should_expose=True)
    return shopping


@pytest.fixture
def every_sensor(monkeypatch: pytest.MonkeyPatch) -> None:
    """Enable all sensors, including those that are disabled by default."""
    monkeypatch.setattr(Entity, "entity_registry_enabled_default", property(lambda self: True))


@pytest.fixture
def set_up(home: HomeAssistant, model_server: ModelServer, every_sensor: None) -> SetUpFn:
    """Return a function that sets up an account with one agent and returns its config entry.

    Keyword arguments change the agent's data; `options` and `account` change the options and data of the account. A
    field of `account` that is None is removed.
    """

    async def set_up(
        *, options: dict[str, Any] | None = None, account: dict[str, Any] | None = None, **agent: Any
    ) -> MockConfigEntry:
        data = {CONF_PROVIDER: PROVIDER_OPENAI_CHAT, CONF_URL: model_server.url, CONF_API_KEY: "key", **(account or {})}
        subentry = ConfigSubentryData(
            # Entity states are disabled, because they make the content of a request harder to read.
            data={CONF_MODEL: "scripted", CONF_LLM_HASS_API: ["assist"], CONF_STATES: False, **agent},
            subentry_type=SUBENTRY_CONVERSATION,
            title="Ada",
            unique_id=None,
        )
        entry = MockConfigEntry(
            domain=DOMAIN,
            title="Server",
            data={name: value for name, value in data.items() if value is not None},
            options=options or {},
            subentries_data=[subentry],
        )
        entry.add_to_hass(home)
        await home.config_entries.async_setup(entry.entry_id)
        await listed(home)
        model_server.log.clear()
        return entry

    return set_up


@pytest.fixture
async def entry(set_up: SetUpFn) -> MockConfigEntry:
    """Return an account whose agent has the default settings."""
    return await set_up()


@pytest.fixture
async def entry_without_model(set_up: SetUpFn) -> MockConfigEntry:
    """Return an account without a model."""
    return await set_up(account={CONF_PROVIDER: PROVIDER_NONE})


def list_fields(form: Submit) -> dict[str, Any]:
    """Return the fields and sections of the open form by name."""
    schema = form.shown.get("data_schema")
    return {str(name): each for name, each in schema.schema.items()} if schema else {}


def list_sections(form: Submit) -> dict[str, dict[str, Any]]:
    """Return the fields of each section in the form, by the name of the section."""
    return {
        name: {str(field): value for field, value in each.schema.schema.items()}
        for name, each in list_fields(form).items()
        if isinstance(each, section)
    }


class Submit:
    """Submits the forms of one flow, one after another; `shown` is the step that is currently open."""

    def __init__(self, home: HomeAssistant, flows: FlowManager[Any, Any, Any], shown: Any) -> None:
        self._home = home
        self._flows = flows
        self.shown = shown

    async def __call__(self, **user_input: Any) -> Any:
        """Submit the open form and return the next step.

        The form is submitted like the frontend does: all shown sections, each with the entered fields that it contains.
        The name of a model is entered as that of a deployment if the form asks for one.
        """
        if "model" in user_input and "deployment" in list_fields(self):
            user_input["deployment"] = user_input.pop("model")
        sections = dict[str, Any]()
        for name, fields in list_sections(self).items():
            inside = {field: user_input.pop(field) for field in fields if field in user_input}
            sections[name] = user_input.pop(name, {}) | inside
        self.shown = await self._flows.async_configure(self.shown["flow_id"], {**user_input, **sections})
        await listed(self._home)
        return self.shown


@pytest.fixture
async def server_form(home: HomeAssistant) -> Submit:
    """Open the form for a new account with a compatible server, and return it."""
    flows = home.config_entries.flow
    menu = await flows.async_init(DOMAIN, context={"source": SOURCE_USER})
    return Submit(home, flows, await flows.async_configure(menu["flow_id"], {"next_step_id": "server"}))


@pytest.fixture
def get_agent() -> Callable[[MockConfigEntry], Agent]:
    """Return a function that returns the only agent of an account."""

    def get_agent(entry: MockConfigEntry) -> Agent:
        (agent,) = entry.runtime_data.agents.values()
        return agent

    return get_agent


@pytest.fixture
def say(home: HomeAssistant) -> SayFn:
    """Return a function that sends text to the agent as an automation does, and waits until everything is on disk."""

    async def say(
        text: str, conversation_id: str | None = "test", *, context: Context | None = None, **more: Any
    ) -> ConversationResult:
        result = await conversation.async_converse(
            home,
            text,
            conversation_id,
            context or Context(),
            **{"language": "en", "agent_id": AGENT, **more},
        )
        for entry in home.config_entries.async_loaded_entries(DOMAIN):
            for agent in entry.runtime_data.agents.values():
                agent.notify_listeners()
        await home.async_block_till_done()
        await flush_store(home)
        return result

    return say


@pytest.fixture
def say_at_once(home: HomeAssistant) -> SayAtOnce:
    """Return a function that sends text to the agent and returns its answer without waiting for work after the turn."""

    async def say_at_once(text: str) -> ConversationResult:
        return await conversation.async_converse(home, text, "mine", Context(), "en", AGENT)

    return say_at_once


async def listed(home: HomeAssistant) -> None:
    """Wait for the background task that lists the models after an account was set up."""
    await home.async_block_till_done(wait_background_tasks=True)


async def flush_store(home: HomeAssistant) -> None:
    """Write the queue to disk as Home Assistant does when it stops, because totals are read from the stored state."""
    home.bus.async_fire(EVENT_HOMEASSISTANT_FINAL_WRITE)
    await home.async_block_till_done()


async def stop(home: HomeAssistant, *entries: MockConfigEntry) -> None:
    """Unload accounts, write everything to disk and discard the state in memory, as when Home Assistant stops."""
    for entry in entries:
        await home.config_entries.async_unload(entry.entry_id)
    await flush_store(home)
    home.data.pop(f"{DOMAIN}_account_states")
    writer = home.data.pop(f"{DOMAIN}_store").writer
    assert await home.async_add_executor_job(writer.close, 60.0)


async def start(home: HomeAssistant, entry: MockConfigEntry) -> None:
    """Set up an account, as when Home Assistant starts."""
    assert await home.config_entries.async_setup(entry.entry_id)
    await listed(home)


async def until(is_so: Callable[[], bool]) -> None:
    """Wait until the condition is true. Raises TimeoutError after 30 seconds."""
    for _ in range(3000):
        if is_so():
            return
        await asyncio.sleep(0.01)
    raise TimeoutError


def get_speech(result: ConversationResult) -> str:
    """Return the spoken answer of a conversation result."""
    return str(result.response.speech["plain"]["speech"])


@pytest.fixture
def figure(home: HomeAssistant) -> Callable[[str], str]:
    """Return a function that returns the state of the sensor with the given translation key."""

    def figure(key: str) -> str:
        registry = er.async_get(home)
        (entity_id,) = [e.entity_id for e in registry.entities.values() if e.translation_key == key]
        state = home.states.get(entity_id)
        assert state is not None
        return state.state

    return figure


@pytest.fixture
def kitchen(home: HomeAssistant) -> ar.AreaEntry:
    """Create an area that contains the kitchen light, and return it."""
    area = ar.async_get(home).async_create("Kitchen")
    er.async_get(home).async_update_entity("input_boolean.kitchen", area_id=area.id)
    return area
