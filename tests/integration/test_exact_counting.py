"""Tests for exact token counting as an agent's option: it uses the vocabulary, or the estimate without one."""

from collections.abc import Iterator
import logging
from pathlib import Path
import sys

from homeassistant.config_entries import ConfigEntryState
from homeassistant.core import HomeAssistant
import pytest

from custom_components.windowed_conversation.bridge.calibration import (
    ExactCounter,
    async_get_exact_counter,
    load_exact_counter,
)
from custom_components.windowed_conversation.const import CONF_EXACT_COUNTING, CONF_TOOL_RESULTS
from custom_components.windowed_conversation.window import EstimatedCounter, Message
from custom_components.windowed_conversation.window.tokens import format_counted_text
from tests.exact_tokens import VOCABULARIES, exact_count, theirs

from .agent_forms import FRIDAY, open_agent_form
from .conftest import SayFn, SetUpFn, Submit, get_speech

# This model never reports usage. Usage would correct the count, because the server has another tokenizer.
SILENT = "scripted+no_usage"


@pytest.fixture(scope="module", autouse=True)
def _tiktoken() -> None:
    """Load tiktoken's vocabulary outside of the event loop."""
    theirs()


@pytest.fixture
def not_loaded() -> Iterator[None]:
    """Load the vocabulary anew in this test, and again after it."""
    load_exact_counter.cache_clear()
    yield
    load_exact_counter.cache_clear()


def missing(vocabulary: Path, path: Path) -> None:
    """Write no file, so that the vocabulary is missing."""


def cut_short(vocabulary: Path, path: Path) -> None:
    path.write_bytes(vocabulary.read_bytes()[:1000])


def another(vocabulary: Path, path: Path) -> None:
    path.write_bytes(vocabulary.read_bytes().replace(b" 100\n", b" 101\n"))


DAMAGES = {missing: "FileNotFoundError", cut_short: "its hash is wrong", another: "its hash is wrong"}


@pytest.fixture(scope="module", params=DAMAGES, ids=lambda damage: damage.__name__)
def damaged_folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Return a folder with a damaged vocabulary, and the reason to expect."""
    folder = tmp_path_factory.mktemp("vocabularies")
    (vocabulary,) = [path for path in VOCABULARIES.iterdir() if not path.name.isupper()]
    request.param(vocabulary, folder / vocabulary.name)
    return folder, DAMAGES[request.param]


@pytest.fixture
def damaged(damaged_folder: tuple[Path, str], not_loaded: None, monkeypatch: pytest.MonkeyPatch) -> str:
    """Use the folder with the damaged vocabulary and return the expected reason."""
    folder, why = damaged_folder
    monkeypatch.setattr(f"{ExactCounter.__module__}._VOCABULARY_FOLDER", folder)
    return why


def cost(message: Message) -> int:
    """Return the tokens of a message: tiktoken's count of its text, four for its frame, and eight per tool call."""
    return exact_count(format_counted_text(message)) + 4 + 8 * len(message.tool_calls)


def logged(caplog: pytest.LogCaptureFixture) -> list[tuple[int, str]]:
    """Return the levels and texts of the log messages about vocabularies."""
    ours = [record for record in caplog.records if record.name == ExactCounter.__module__]
    return [(record.levelno, record.getMessage()) for record in ours]


async def test_window_holds_what_tiktoken_counts(set_up: SetUpFn, say: SayFn, get_agent) -> None:
    entry = await set_up(
        model=SILENT, routing="model_only", options={CONF_TOOL_RESULTS: "keep"}, **{CONF_EXACT_COUNTING: True}
    )

    await say("turn on the kitchen light")
    await say("mein Name ist Änne, und die Küche heißt 厨房 🍳")

    (window,) = get_agent(entry).windows.loaded_windows().values()
    system, *messages = window.messages()
    assert {message.role for message in messages} == {"user", "assistant", "tool"}
    assert [message.tokens for message in messages] == [cost(message) for message in messages]
    assert window.stats().current_tokens == sum(cost(message) for message in messages)
    assert window.stats().prefix_tokens == cost(system)


async def test_vocabulary_is_read_once_for_all_agents(
    home: HomeAssistant, set_up: SetUpFn, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = await set_up(exact_counting=True)
    known = await async_get_exact_counter(home, is_wanted=True)
    monkeypatch.setattr(f"{ExactCounter.__module__}._VOCABULARY_FOLDER", Path("gone"))

    await home.config_entries.async_reload(entry.entry_id)

    assert isinstance(known, ExactCounter)
    assert await async_get_exact_counter(home, is_wanted=True) is known


@pytest.mark.long
async def test_damaged_vocabulary_is_told_once_and_tokens_are_estimated(
    damaged: str, set_up: SetUpFn, say: SayFn, get_agent, caplog
) -> None:
    entry = await set_up(model=SILENT, exact_counting=True)
    await set_up(exact_counting=True)

    assert entry.state is ConfigEntryState.LOADED
    assert "Nice to meet you" in get_speech(await say("my name is Ada"))
    (window,) = get_agent(entry).windows.loaded_windows().values()
    question = window.messages()[1]
    assert question.tokens == 4 + EstimatedCounter().count(question.content)
    told = f"The vocabulary o200k_base cannot be used, so tokens are estimated: {damaged}"
    assert logged(caplog) == [(logging.WARNING, told)]


@pytest.mark.usefixtures("not_loaded")
async def test_package_that_does_not_load_is_logged_once_and_costs_no_account(
    set_up: SetUpFn, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "tiktoken", None)
    entries = [await set_up(model=SILENT, exact_counting=True) for _ in range(2)]

    assert {entry.state for entry in entries} == {ConfigEntryState.LOADED}
    told = "The package tiktoken cannot be used, so tokens are estimated: ModuleNotFoundError"
    assert logged(caplog) == [(logging.WARNING, told)]


@pytest.fixture
async def edit_agent_form(home: HomeAssistant, entry) -> Submit:
    """Open the form that changes the agent Ada, which uses estimated counts, and return it."""
    return await open_agent_form(home, entry)


async def test_form_estimates_by_itself(edit_agent_form: Submit, entry) -> None:
    await edit_agent_form(**{key: value for key, value in FRIDAY.items() if key != CONF_EXACT_COUNTING})

    (ada,) = entry.subentries.values()
    assert ada.data[CONF_EXACT_COUNTING] is False


async def test_change_to_exact_counts_keeps_the_conversation_and_counts_what_comes(
    edit_agent_form: Submit, entry, say: SayFn, get_agent
) -> None:
    await say("my name is Ada")
    (window,) = get_agent(entry).windows.loaded_windows().values()
    before = window.messages()[1:]

    await edit_agent_form(**FRIDAY | {"model": SILENT, "scope": "conversation", CONF_EXACT_COUNTING: True})

    assert "Ada" in get_speech(await say("what is my name?"))
    assert [*get_agent(entry).windows.loaded_windows().values()] == [window]
    messages = window.messages()[1:]
    assert messages[: len(before)] == before
    assert [m.tokens for m in messages[len(before) :]] == [cost(m) for m in messages[len(before) :]]
