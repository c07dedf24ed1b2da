"""Tests for the time of imports: an SDK is loaded only when an account needs it, and outside of the event loop."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
import subprocess
import sys

from homeassistant.config_entries import ConfigEntryState
from homeassistant.const import CONF_API_KEY, CONF_URL
from homeassistant.core import HomeAssistant
from homeassistant.data_entry_flow import FlowResultType
import pytest

import custom_components.windowed_conversation
from custom_components.windowed_conversation.const import CONF_PROVIDER, PROVIDER_GEMINI
from demo.model_server import ModelServer

from .account_forms import open_account
from .conftest import SayFn, get_speech
from .states import get_state

PACKAGE = Path(custom_components.windowed_conversation.__path__[0])
REPOSITORY = PACKAGE.parent.parent
INTEGRATION = "custom_components.windowed_conversation"
OF_THE_SDK = ("openai", f"{INTEGRATION}.providers.openai")
# A turn does not need Google's packages.
OF_GOOGLE = ("google", f"{INTEGRATION}.providers.gemini")
SDK_PACKAGES = (*OF_THE_SDK, f"{INTEGRATION}.providers.anthropic")

IMPORT_SCRIPT = """
import importlib, sys
for name in sys.argv[1:]:
    importlib.import_module(name)
print(*sorted(sys.modules))
"""


def list_modules() -> list[str]:
    """Return the names of all modules of the integration."""
    paths = [path.relative_to(REPOSITORY).with_suffix("") for path in PACKAGE.rglob("*.py")]
    return [".".join(path.parts).removesuffix(".__init__") for path in paths]


ALL = list_modules()
# All modules except those that import an SDK.
MODULES = [name for name in ALL if not name.startswith(SDK_PACKAGES)]


@pytest.fixture(scope="module")
def loaded() -> set[str]:
    """Return the modules that a new interpreter has loaded after importing the integration and its platforms."""
    child = subprocess.run(
        [sys.executable, "-c", IMPORT_SCRIPT, *MODULES], cwd=REPOSITORY, capture_output=True, text=True, check=True
    )
    return set(child.stdout.split())


@pytest.mark.long
def test_importing_the_integration_and_its_platforms_loads_no_sdk(loaded: set[str]) -> None:
    assert {"homeassistant", *MODULES} <= loaded
    assert f"{INTEGRATION}.providers.gemini.clients" in loaded
    assert not {"anthropic", "google", "openai", "tiktoken"} & loaded


@contextmanager
def unloaded(packages: tuple[str, ...]) -> Iterator[None]:
    """Remove packages from this interpreter's loaded modules and restore them afterwards."""
    before = {name: module for name, module in sys.modules.items() if name.startswith(packages)}
    for name in before:
        del sys.modules[name]
    yield
    for name in [name for name in sys.modules if name.startswith(packages)]:
        del sys.modules[name]
    sys.modules.update(before)


@pytest.fixture
def unloaded_sdk() -> Iterator[None]:
    """Unload the SDK from this interpreter, as if Home Assistant had just started."""
    with unloaded(OF_THE_SDK):
        yield


@pytest.fixture
def unloaded_google() -> Iterator[None]:
    """Unload all Google packages from this interpreter, as if Home Assistant had just started."""
    with unloaded(OF_GOOGLE):
        yield


@pytest.mark.long
async def test_sdk_is_loaded_outside_of_the_event_loop(
    home: HomeAssistant, unloaded_sdk: None, set_up, say: SayFn, caplog: pytest.LogCaptureFixture
) -> None:
    entry = await set_up()

    assert "Nice to meet you" in get_speech(await say("my name is Ada"))
    assert entry.state is ConfigEntryState.LOADED
    assert "openai" in sys.modules
    assert "blocking call" not in caplog.text


async def test_account_without_a_model_loads_no_sdk(
    home: HomeAssistant, unloaded_sdk: None, entry_without_model, say: SayFn
) -> None:
    await say("turn on kitchen light")

    assert get_state(home, "input_boolean.kitchen").state == "on"
    assert "openai" not in sys.modules


async def test_gemini_account_that_is_set_up_from_storage_and_its_turns_load_nothing_of_google(
    home: HomeAssistant, unloaded_google: None, set_up, say: SayFn, model_server: ModelServer
) -> None:
    await set_up(account={CONF_PROVIDER: PROVIDER_GEMINI, CONF_URL: model_server.address})
    await home.async_block_till_done(wait_background_tasks=True)

    assert "Nice to meet you" in get_speech(await say("my name is Ada"))
    assert "Ada" in get_speech(await say("what is my name?"))
    assert {request.format for request in model_server.log.records} == {"gemini"}
    assert [name for name in sys.modules if name.partition(".")[0] == "google"] == []


@pytest.mark.long
async def test_adding_a_gemini_account_loads_nothing_of_google(
    home: HomeAssistant, unloaded_google: None, model_server: ModelServer
) -> None:
    form = await open_account(home, "gemini")
    await form(**{CONF_API_KEY: "key", "advanced": {CONF_URL: model_server.address}})

    made = await form(name="Ada", model="scripted")

    assert made["type"] is FlowResultType.CREATE_ENTRY
    assert [name for name in sys.modules if name.partition(".")[0] == "google"] == []
