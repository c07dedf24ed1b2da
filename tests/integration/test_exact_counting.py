"""Tests for exact token counting as an agent's option: it uses the vocabulary, or the estimate without one."""

from collections.abc import Iterator
import gzip
import logging
from pathlib import Path
import shutil
import sys

from homeassistant.config_entries import ConfigEntryState
from homeassistant.core import HomeAssistant
import pytest

from custom_components.windowed_conversation.bridge.calibration import (
    ExactCounter,
    async_get_exact_counter,
    load_exact_counter,
)
from custom_components.windowed_conversation.const import CONF_COUNTING, CONF_TOOL_RESULTS, Counting
from custom_components.windowed_conversation.window import EstimatedCounter, Message
from custom_components.windowed_conversation.window.tokens import format_counted_text
from tests.exact_tokens import ENCODINGS, VOCABULARIES, exact_count, theirs, vocabulary

from .agent_forms import FRIDAY, get_selectors, open_agent_form
from .conftest import SayFn, SetUpFn, Submit, get_speech

# This model never reports usage. Usage would correct the count, because the server has another tokenizer.
SILENT = "scripted+no_usage"


@pytest.fixture(scope="module", autouse=True)
def _tiktoken() -> None:
    """Load tiktoken's vocabularies outside of the event loop."""
    for encoding in ENCODINGS:
        theirs(encoding)


@pytest.fixture
def not_loaded() -> Iterator[None]:
    """Load vocabularies anew in this test, and again after it."""
    load_exact_counter.cache_clear()
    yield
    load_exact_counter.cache_clear()


def missing(vocabulary: bytes, path: Path) -> None:
    """Write no file, so that the vocabulary is missing."""


def cut_short(vocabulary: bytes, path: Path) -> None:
    path.write_bytes(gzip.compress(vocabulary)[:1000])


def no_gzip(vocabulary: bytes, path: Path) -> None:
    path.write_bytes(vocabulary)


def garbled(vocabulary: bytes, path: Path) -> None:
    path.write_bytes(gzip.compress(vocabulary)[:10] + b"\xff" * 1000)


def another(vocabulary: bytes, path: Path) -> None:
    path.write_bytes(gzip.compress(vocabulary.replace(b" 100\n", b" 101\n")))


DAMAGES = {
    missing: "FileNotFoundError",
    cut_short: "EOFError",
    no_gzip: "BadGzipFile",
    garbled: "error",
    another: "its hash is wrong",
}


@pytest.fixture(scope="module", params=DAMAGES, ids=lambda damage: damage.__name__)
def damaged_folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Return a folder with a damaged o200k_base and an intact cl100k_base vocabulary, and the reason to expect."""
    folder = tmp_path_factory.mktemp("vocabularies")
    shutil.copy(VOCABULARIES / "cl100k_base.tiktoken.gz", folder)
    request.param(vocabulary("o200k_base"), folder / "o200k_base.tiktoken.gz")
    return folder, DAMAGES[request.param]


@pytest.fixture
def damaged(damaged_folder: tuple[Path, str], not_loaded: None, monkeypatch: pytest.MonkeyPatch) -> str:
    """Use the folder with the damaged o200k_base vocabulary and return the expected reason."""
    folder, why = damaged_folder
    monkeypatch.setattr(f"{ExactCounter.__module__}._VOCABULARY_FOLDER", folder)
    return why


def cost(message: Message, encoding: str) -> int:
    """Return the tokens of a message: tiktoken's count of its text, four for its frame, and eight per tool call."""
    return exact_count(encoding, format_counted_text(message)) + 4 + 8 * len(message.tool_calls)


def logged(caplog: pytest.LogCaptureFixture) -> list[tuple[int, str]]:
    """Return the levels and texts of the log messages about vocabularies."""
    ours = [record for record in caplog.records if record.name == ExactCounter.__module__]
    return [(record.levelno, record.getMessage()) for record in ours]


@pytest.mark.parametrize("encoding", ENCODINGS)
async def test_window_holds_what_tiktoken_counts(encoding: str, set_up: SetUpFn, say: SayFn, get_agent) -> None:
    entry = await set_up(
        model=SILENT, routing="model_only", options={CONF_TOOL_RESULTS: "keep"}, **{CONF_COUNTING: encoding}
    )

    await say("turn on the kitchen light")
    await say("mein Name ist Änne, und die Küche heißt 厨房 🍳")

    (window,) = get_agent(entry).windows.loaded_windows().values()
    system, *messages = window.messages()
    assert {message.role for message in messages} == {"user", "assistant", "tool"}
    assert [message.tokens for message in messages] == [cost(message, encoding) for message in messages]
    assert window.stats().current_tokens == sum(cost(message, encoding) for message in messages)
    assert window.stats().prefix_tokens == cost(system, encoding)


async def test_vocabulary_is_read_once_for_all_agents(
    home: HomeAssistant, set_up: SetUpFn, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = await set_up(counting="o200k_base")
    known = await async_get_exact_counter(home, Counting.O200K_BASE)
    monkeypatch.setattr(f"{ExactCounter.__module__}._VOCABULARY_FOLDER", Path("gone"))

    await home.config_entries.async_reload(entry.entry_id)

    assert isinstance(known, ExactCounter)
    assert await async_get_exact_counter(home, Counting.O200K_BASE) is known


@pytest.mark.long
async def test_damaged_vocabulary_is_told_once_and_tokens_are_estimated(
    damaged: str, set_up: SetUpFn, say: SayFn, get_agent, caplog
) -> None:
    entry = await set_up(model=SILENT, counting="o200k_base")
    await set_up(counting="o200k_base")

    assert entry.state is ConfigEntryState.LOADED
    assert "Nice to meet you" in get_speech(await say("my name is Ada"))
    (window,) = get_agent(entry).windows.loaded_windows().values()
    question = window.messages()[1]
    assert question.tokens == 4 + EstimatedCounter().count(question.content)
    told = f"The vocabulary o200k_base cannot be used, so tokens are estimated: {damaged}"
    assert logged(caplog) == [(logging.WARNING, told)]


@pytest.mark.long
async def test_other_vocabulary_is_used_where_one_is_damaged(damaged: str, home: HomeAssistant) -> None:
    assert await async_get_exact_counter(home, Counting.O200K_BASE) is None
    assert isinstance(await async_get_exact_counter(home, Counting.CL100K_BASE), ExactCounter)


@pytest.mark.usefixtures("not_loaded")
async def test_package_that_does_not_load_is_logged_once_and_costs_no_account(
    set_up: SetUpFn, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "tiktoken", None)
    entries = [await set_up(model=SILENT, counting="o200k_base") for _ in range(2)]

    assert {entry.state for entry in entries} == {ConfigEntryState.LOADED}
    told = "The package tiktoken cannot be used, so tokens are estimated: ModuleNotFoundError"
    assert logged(caplog) == [(logging.WARNING, told)]


@pytest.fixture
async def edit_agent_form(home: HomeAssistant, entry) -> Submit:
    """Open the form that changes the agent Ada, which uses estimated counts, and return it."""
    return await open_agent_form(home, entry)


async def test_form_offers_the_ways_to_count_and_estimates_by_itself(edit_agent_form: Submit, entry) -> None:
    fields = get_selectors(edit_agent_form)
    assert fields[CONF_COUNTING].config["options"] == ["estimate", "o200k_base", "cl100k_base"]

    await edit_agent_form(**{key: value for key, value in FRIDAY.items() if key != CONF_COUNTING})

    (ada,) = entry.subentries.values()
    assert ada.data[CONF_COUNTING] == "estimate"


async def test_change_to_exact_counts_keeps_the_conversation_and_counts_what_comes(
    edit_agent_form: Submit, entry, say: SayFn, get_agent
) -> None:
    await say("my name is Ada")
    (window,) = get_agent(entry).windows.loaded_windows().values()
    before = window.messages()[1:]

    await edit_agent_form(**FRIDAY | {"model": SILENT, "scope": "conversation", CONF_COUNTING: "o200k_base"})

    assert "Ada" in get_speech(await say("what is my name?"))
    assert [*get_agent(entry).windows.loaded_windows().values()] == [window]
    messages = window.messages()[1:]
    assert messages[: len(before)] == before
    assert [m.tokens for m in messages[len(before) :]] == [cost(m, "o200k_base") for m in messages[len(before) :]]
