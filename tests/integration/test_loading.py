"""What is imported, and when: no SDK before an account needs one, and then not in the event loop."""

from collections.abc import Iterator
from pathlib import Path
import subprocess
import sys

from homeassistant.config_entries import ConfigEntryState
from homeassistant.core import HomeAssistant
import pytest

import custom_components.windowed_conversation

from .conftest import Say, speech
from .states import state_of

PACKAGE = Path(custom_components.windowed_conversation.__path__[0])
REPOSITORY = PACKAGE.parent.parent
INTEGRATION = "custom_components.windowed_conversation"
OF_THE_SDK = ("openai", f"{INTEGRATION}.providers.openai")
INTEROP = f"{INTEGRATION}.window.interop"
OF_ANY_SDK = (*OF_THE_SDK, f"{INTEGRATION}.providers.anthropic", f"{INTEGRATION}.providers.gemini")

IMPORT_ALL = """
import importlib, sys
for name in sys.argv[1:]:
    importlib.import_module(name)
print(*sorted(sys.modules))
"""


def all_modules() -> list[str]:
    """Return the names of all modules of the integration."""
    paths = [path.relative_to(REPOSITORY).with_suffix("") for path in PACKAGE.rglob("*.py")]
    return [".".join(path.parts).removesuffix(".__init__") for path in paths]


ALL = all_modules()
# But those of an SDK's format, and those for programs without Home Assistant.
MODULES = [name for name in ALL if not name.startswith((*OF_ANY_SDK, INTEROP))]


@pytest.fixture(scope="module")
def loaded() -> set[str]:
    """Return what a fresh interpreter has loaded when it has imported the integration and its platforms."""
    child = subprocess.run(
        [sys.executable, "-c", IMPORT_ALL, *MODULES], cwd=REPOSITORY, capture_output=True, text=True, check=True
    )
    return set(child.stdout.split())


@pytest.mark.long
def test_importing_the_integration_and_its_platforms_loads_no_sdk(loaded: set[str]) -> None:
    assert {"homeassistant", *MODULES} <= loaded
    assert not {"anthropic", "google.genai", "openai", "tiktoken"} & loaded


@pytest.mark.long
def test_importing_the_integration_does_not_load_what_is_for_other_programs(loaded: set[str]) -> None:
    assert INTEROP in ALL
    assert not any(name.startswith(INTEROP) for name in loaded)


@pytest.fixture
def sdk_unloaded() -> Iterator[None]:
    """Take the SDK out of this interpreter, as in a Home Assistant that has just started."""
    before = {name: module for name, module in sys.modules.items() if name.startswith(OF_THE_SDK)}
    for name in before:
        del sys.modules[name]
    yield
    for name in [name for name in sys.modules if name.startswith(OF_THE_SDK)]:
        del sys.modules[name]
    sys.modules.update(before)


@pytest.mark.long
async def test_sdk_is_loaded_outside_of_the_event_loop(
    home: HomeAssistant, sdk_unloaded: None, set_up, say: Say, caplog: pytest.LogCaptureFixture
) -> None:
    entry = await set_up()

    assert "Nice to meet you" in speech(await say("my name is Ada"))
    assert entry.state is ConfigEntryState.LOADED
    assert "openai" in sys.modules
    assert "blocking call" not in caplog.text


async def test_account_without_a_model_loads_no_sdk(
    home: HomeAssistant, sdk_unloaded: None, entry_without_model, say: Say
) -> None:
    await say("turn on kitchen light")

    assert state_of(home, "input_boolean.kitchen").state == "on"
    assert "openai" not in sys.modules
