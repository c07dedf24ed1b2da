"""Tests for the memory actions: their effects, the permissions they require, and their errors."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import product
import json
import os
from pathlib import Path
from reprlib import repr as abbreviate
import stat
from typing import Any

from homeassistant.auth.const import GROUP_ID_ADMIN, GROUP_ID_READ_ONLY, GROUP_ID_USER
from homeassistant.core import Context, HomeAssistant
from homeassistant.exceptions import HomeAssistantError, ServiceValidationError, Unauthorized
from homeassistant.util import dt as dt_util
import probatio
import pytest

from custom_components.windowed_conversation.agents.actions import memory as memory_actions
from custom_components.windowed_conversation.memory.core import PastTurn

from .actions import MEMORY_ACTIONS, TURN_ACTIONS, act
from .conftest import SetUpFn, flush_store, stop
from .remembered import add_fact, list_facts, memory_of

BINS, DENTIST, TEA, HANSEN = (
    "The bins go out on Friday",
    "Dentist on Tuesday",
    "Ada likes tea",
    "Grace's dentist is Hansen",
)
MORNING = datetime(2026, 1, 31, 8, tzinfo=UTC)
# Actions that require an administrator: reading or writing a file, or acting for another person or for everyone.
TRUSTED: dict[str, tuple[str, dict[str, Any]]] = {
    "recalls someone's": ("recall", {"query": "tea", "person": "person.ada"}),
    "lists someone's": ("recall", {"person": "person.ada"}),
    "lists nobody's": ("recall", {"person": "person.nobody"}),
    "remembers of someone": ("remember", {"text": "Ada likes rum", "person": "person.ada"}),
    "forgets someone's": ("forget", {"everything": True, "person": "person.ada"}),
    "forgets everyone's": ("forget", {"everything": True, "everyone": True}),
    "exports someone's": ("export_memories", {"person": "person.ada", "filename": "exports/a.jsonl"}),
    "exports everyone's": ("export_memories", {"everyone": True}),
    "writes a file": ("export_memories", {"filename": "exports/a.jsonl"}),
    "imports": ("import_memories", {"memories": []}),
}


@dataclass(frozen=True)
class People:
    """Contexts of callers: an administrator, two users, a read-only guest, and an automation, which has no user."""

    admin: Context
    ada: Context
    grace: Context
    guest: Context
    automation: Context


@pytest.fixture
async def people(home: HomeAssistant) -> People:
    """Create the owner and the users, and return their contexts; only Ada has a person entity."""

    async def person(name: str, group: str) -> Context:
        return Context(user_id=(await home.auth.async_create_user(name, group_ids=[group])).id)

    await person("Owner", GROUP_ID_ADMIN)
    ada = await person("Ada", GROUP_ID_USER)
    home.states.async_set("person.ada", "home", {"user_id": ada.user_id})
    home.states.async_set("person.nobody", "home")
    return People(
        await person("Admin", GROUP_ID_ADMIN),
        ada,
        await person("Grace", GROUP_ID_USER),
        await person("Guest", GROUP_ID_READ_ONLY),
        Context(),
    )


@pytest.fixture
async def told(home: HomeAssistant, entry, people: People) -> None:
    """Store a fact of the home, a private and an open fact of Ada's, a private fact of Grace's, and a turn of Ada's."""
    at = MORNING.timestamp()
    for text, whose, private in (
        (BINS, None, False),
        (DENTIST, people.ada, True),
        (TEA, people.ada, False),
        (HANSEN, people.grace, True),
    ):
        await add_fact(home, text, person=whose.user_id if whose else None, private=private, at=at)
        at += 60
    # an older turn would expire
    now = dt_util.utcnow().timestamp()
    memory_of(home).writer.put(PastTurn("mine", now, "book the dentist", "Done", person=people.ada.user_id))
    await flush_store(home)


@pytest.fixture
def folder(home: HomeAssistant, tmp_path: Path) -> Path:
    """Return a folder that Home Assistant may access; the folder of the store is not accessible."""
    home.config.config_dir = str(tmp_path / "config")
    folder = tmp_path / "config" / "exports"
    folder.mkdir(parents=True)
    (tmp_path / "config" / "www").mkdir()
    home.config.allowlist_external_dirs = {str(folder), str(tmp_path / "config" / "www")}
    return folder


async def texts(home: HomeAssistant, context: Context | None = None, **data: Any) -> list[str]:
    """Return the texts of the facts that `recall` returns."""
    return [each["text"] for each in (await act(home, "recall", context, kinds="fact", **data))["memories"]]


async def list_all_facts(home: HomeAssistant) -> set[str]:
    """Return the texts of all stored facts."""
    lines: list[str] = await memory_of(home).async_read(lambda opened: list(opened.export()), [])
    return {fact["text"] for line in lines if (fact := json.loads(line))["kind"] == "fact"}


async def test_fact_is_remembered_and_recalled(home: HomeAssistant, entry) -> None:
    stored = await act(home, "remember", text="The bins go out on [Friday]")

    assert stored == {"id": "fact:1", "text": BINS, "person": None, "private": False, "replaced": None}
    (found,) = (await act(home, "recall", query="when do the bins go out?"))["memories"]
    assert (found["id"], found["kind"], found["text"], found["person"], found["private"]) == (
        "fact:1",
        "fact",
        BINS,
        None,
        False,
    )


async def test_fact_replaces_the_one_that_it_updates(home: HomeAssistant, entry) -> None:
    await act(home, "remember", text=BINS)

    stored = await act(home, "remember", text="The bins go out on Monday")

    assert stored["replaced"] == BINS
    assert await texts(home) == ["The bins go out on Monday"]


async def test_times_come_in_and_go_out_in_iso_8601(home: HomeAssistant, told, people: People) -> None:
    await home.config.async_set_time_zone("Asia/Tokyo")

    listed = (await act(home, "recall", people.ada, kinds="fact", until="2026-01-31T17:00:30"))["memories"]

    assert [each["text"] for each in listed] == [BINS]
    assert listed[0]["time"] == "2026-01-31T17:00:00+09:00"
    since = (MORNING + timedelta(seconds=90)).isoformat()
    assert await texts(home, people.ada, since=since) == [TEA]
    assert await texts(home, people.ada, query="dentist tea bins", since=since) == [TEA]


async def test_newest_memories_come_first_if_nothing_is_looked_for(home: HomeAssistant, told, people: People) -> None:
    newest = (await act(home, "recall", people.ada, kinds="fact", limit=2))["memories"]
    older = await texts(home, people.ada, until=newest[-1]["time"])

    assert [each["text"] for each in newest] == [TEA, DENTIST]
    assert older == [DENTIST, BINS]
    (turn,) = (await act(home, "recall", people.ada, kinds="turn"))["memories"]
    assert (turn["text"], turn["person"], turn["conversation_id"]) == ("book the dentist\nDone", "Ada", "mine")


@pytest.mark.parametrize(
    ("conditions", "gone"),
    [
        ({"ids": "fact:1"}, {BINS}),
        ({"ids": ["fact:2", "fact:3"]}, {DENTIST, TEA}),
        ({"query": "dentist"}, {DENTIST}),
        ({"until": "2026-01-31T08:01:00+00:00"}, {DENTIST}),
        ({"since": "2026-01-31T08:01:30+00:00"}, {TEA}),
        ({"query": "dentist", "since": "2026-01-31T08:01:30+00:00"}, set()),
        ({"everything": True}, {DENTIST, TEA}),
        ({"ids": "fact:4"}, set()),
        ({"query": "Hansen"}, set()),
    ],
)
async def test_person_forgets_what_is_theirs_and_by_name_what_is_the_homes(
    home: HomeAssistant, told, people: People, conditions: dict[str, Any], gone: set[str]
) -> None:
    forgotten = await act(home, "forget", people.ada, **conditions)

    assert (forgotten["facts"], forgotten["erased"]) == (len(gone), True)
    assert await list_all_facts(home) == {BINS, DENTIST, TEA, HANSEN} - gone


async def test_dry_run_shows_what_would_go_and_leaves_it(home: HomeAssistant, told, people: People) -> None:
    shown = await act(home, "forget", people.ada, query="dentist", dry_run=True)

    assert (shown["facts"], shown["turns"]) == (1, 1)
    assert [each["text"] for each in shown["memories"]] == ["book the dentist\nDone", DENTIST]
    assert len(await list_all_facts(home)) == 4


UNCLEAR: list[tuple[str, str, dict[str, Any], str]] = [
    ("automation", "forget", {}, "memory_no_condition"),
    ("automation", "forget", {"everything": True, "query": "tea"}, "memory_no_condition"),
    ("automation", "forget", {"everything": True}, "memory_no_person"),
    ("automation", "forget", {"until": "2026-01-31T08:00:00"}, "memory_no_person"),
    ("automation", "forget", {"everyone": True, "query": "tea"}, "memory_everyone_by_time"),
    (
        *("automation", "forget"),
        {"everyone": True, "person": "person.ada", "everything": True},
        "memory_person_or_everyone",
    ),
    ("automation", "forget", {"person": "person.nobody", "everything": True}, "memory_unknown_person"),
    ("automation", "forget", {"person": "gone", "everything": True}, "memory_unknown_person"),
    ("automation", "remember", {"text": "I hate geese"}, "memory_no_person"),
    ("automation", "remember", {"text": BINS, "private": True}, "memory_no_person"),
    ("admin", "export_memories", {"everyone": True}, "memory_file_needed"),
    ("admin", "export_memories", {"person": "person.ada"}, "memory_file_needed"),
    ("automation", "import_memories", {}, "memory_import_nothing"),
    ("automation", "import_memories", {"memories": [], "filename": "exports/a.jsonl"}, "memory_import_nothing"),
]


@pytest.mark.usefixtures("told", "folder")
async def test_unclear_wish_is_refused(home: HomeAssistant, people: People, subtests: pytest.Subtests) -> None:
    for who, action, data, key in UNCLEAR:
        with subtests.test(who=who, action=action, data=data):
            facts = await list_all_facts(home)

            with pytest.raises(ServiceValidationError) as refused:
                await act(home, action, getattr(people, who), **data)

            assert refused.value.translation_key == key
            assert await list_all_facts(home) == facts


ABSURD: list[tuple[str, dict[str, Any]]] = [
    ("remember", {"text": "x" * 301}),
    ("remember", {"text": "..."}),
    ("recall", {"query": ""}),
    ("recall", {"query": "tea", "limit": 101}),
    ("recall", {"limit": 0}),
    ("recall", {"query": "tea", "kinds": "secret"}),
    ("recall", {"query": "tea", "since": "yesterday"}),
    ("forget", {"ids": "7"}),
    ("forget", {"ids": "fact:seven"}),
    ("forget", {"ids": ["fact:1"] * 1_001}),
    ("export_memories", {"offset": -1}),
    ("import_memories", {"memories": [{}] * 10_001}),
]


async def test_absurd_figures_and_texts_are_refused(home: HomeAssistant, entry, subtests: pytest.Subtests) -> None:
    for action, data in ABSURD:
        with subtests.test(action=action, data=abbreviate(data)), pytest.raises(probatio.Invalid):
            await act(home, action, **data)


# Tests for permissions.
async def test_who_may_only_read_sees_and_changes_nothing(home: HomeAssistant, told, people: People) -> None:
    assert await texts(home, people.guest) == [BINS]

    for action, data in (("remember", {"text": TEA}), ("forget", {"query": "bins"})):
        with pytest.raises(Unauthorized) as refused:
            await act(home, action, people.guest, **data)
        assert refused.value.permission == "control"
    assert len(await list_all_facts(home)) == 4


@pytest.mark.parametrize("who", ["admin", "automation"])
async def test_administrator_and_automation_forget_unseen_all_of_a_person(
    home: HomeAssistant, told, people: People, who: str
) -> None:
    caller = getattr(people, who)
    shown = await act(home, "forget", caller, everything=True, person=people.ada.user_id, dry_run=True)
    forgotten = await act(home, "forget", caller, everything=True, person=people.ada.user_id)

    assert [each["text"] for each in shown["memories"]] == [TEA]
    assert (forgotten["facts"], forgotten["turns"]) == (shown["facts"], shown["turns"]) == (2, 1)
    assert await list_all_facts(home) == {BINS, HANSEN}


@pytest.mark.parametrize("conditions", [{"everything": True}, {"until": "2026-02-01T00:00:00"}])
async def test_administrator_forgets_everything_of_everyone(
    home: HomeAssistant, told, people: People, conditions: dict[str, Any]
) -> None:
    await act(home, "forget", people.admin, everyone=True, **conditions)

    assert await list_all_facts(home) == set()


async def test_person_does_nothing_for_others(
    home: HomeAssistant, told, people: People, folder: Path, subtests: pytest.Subtests
) -> None:
    for case, (action, data) in TRUSTED.items():
        with subtests.test(case):
            facts = await list_all_facts(home)

            with pytest.raises(Unauthorized):
                await act(home, action, people.grace, **data)

            assert await list_all_facts(home) == facts


OWNED: list[tuple[str, dict[str, Any], str | None, bool]] = [
    ("ada", {"text": BINS}, None, False),
    ("ada", {"text": "I hate geese"}, "ada", True),
    ("ada", {"text": "I hate geese", "private": False}, "ada", False),
    ("ada", {"text": "Geese are bad", "private": True}, "ada", True),
    ("ada", {"text": "Ada hates geese", "person": "person.ada"}, "ada", False),
    ("admin", {"text": "Ada hates geese", "person": "person.ada"}, "ada", False),
    ("automation", {"text": "Ada hates geese", "person": "person.ada", "private": True}, "ada", True),
    ("automation", {"text": BINS}, None, False),
]


async def test_fact_is_the_homes_or_a_persons(
    home: HomeAssistant, entry, people: People, subtests: pytest.Subtests
) -> None:
    for who, data, owner, private in OWNED:
        with subtests.test(who=who, data=data):
            await act(home, "forget", people.admin, everyone=True, everything=True)

            await act(home, "remember", getattr(people, who), **data)

            (fact,) = await list_facts(home, people.ada.user_id)
            assert (fact.person, fact.private) == (owner and getattr(people, owner).user_id, private)


async def test_update_by_others_names_nothing_private(home: HomeAssistant, entry, people: People) -> None:
    await act(home, "remember", people.ada, text="My dentist is on Monday")

    stored = await act(home, "remember", text="My dentist is on Friday", person="person.ada")

    assert stored["replaced"] is None
    assert "My dentist is on Monday" in await texts(home, people.ada)


# Tests for export and import.
async def test_export_in_pages_is_imported_again(
    home: HomeAssistant, told, people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory_actions, "_EXPORT_PAGE_SIZE", 3)
    first = await act(home, "export_memories", people.ada)
    second = await act(home, "export_memories", people.ada, offset=first["next_offset"])
    memories = first["memories"] + second["memories"]
    assert {each.get("person") for each in memories} == {None, people.ada.user_id}
    assert (len(first["memories"]), second["next_offset"]) == (3, None)

    assert await act(home, "import_memories", people.admin, memories=memories) == {
        "added": 0,
        "known": 4,
        "refused": 0,
    }
    await act(home, "forget", people.ada, query="tea")
    assert (await act(home, "import_memories", memories=memories))["refused"] == 1
    assert TEA not in await list_all_facts(home)


async def test_everything_is_exported_to_a_private_file_and_imported_from_it(
    *, home: HomeAssistant, set_up: SetUpFn, entry, told, folder: Path, store_path: Path
) -> None:
    file = folder / "memories.jsonl"
    before = await list_all_facts(home)

    done = await act(home, "export_memories", everyone=True, filename=str(file))

    assert done == {"filename": str(file), "written": 5}
    assert stat.S_IMODE((await home.async_add_executor_job(file.stat)).st_mode) == 0o600
    assert await home.async_add_executor_job(lambda: [each.name for each in folder.iterdir()]) == [file.name]
    await home.config_entries.async_remove(entry.entry_id)
    await home.async_add_executor_job(store_path.unlink)
    await set_up()
    loaded = await act(home, "import_memories", filename="exports/memories.jsonl")

    assert loaded == {"added": 5, "known": 0, "refused": 0}
    assert await list_all_facts(home) == before


FILES_ELSEWHERE = {
    "exports/memories.yaml": "file_not_allowed",
    "elsewhere/memories.jsonl": "file_not_allowed",
    "exports/../memories.jsonl": "file_not_allowed",
    "www/memories.jsonl": "file_not_allowed",
    "exports/link.jsonl": "file_not_allowed",
    "exports/mem\0ories.jsonl": "file_failed",
    "exports/mem\ud800ories.jsonl": "file_failed",
}


async def test_file_elsewhere_is_refused(
    home: HomeAssistant, told, people: People, folder: Path, subtests: pytest.Subtests
) -> None:
    (folder / "link.jsonl").symlink_to(folder.parent / "www" / "memories.jsonl")

    for action, filename in product(("export_memories", "import_memories"), FILES_ELSEWHERE):
        with subtests.test(action=action, filename=ascii(filename)):
            with pytest.raises(ServiceValidationError) as refused:
                await act(home, action, people.admin, filename=filename)

            assert refused.value.translation_key == FILES_ELSEWHERE[filename]


async def test_refusal_of_a_file_names_the_folders_that_can_be_used(home: HomeAssistant, told, folder: Path) -> None:
    home.config.allowlist_external_dirs |= {str(folder.parent / "www"), "/srv/exports"}

    with pytest.raises(ServiceValidationError) as refused:
        await act(home, "export_memories", everyone=True, filename="/media/memories.jsonl")

    folders = ", ".join(sorted(["/srv/exports", str(folder)]))
    assert str(refused.value) == (
        f"/media/memories.jsonl cannot be used. The file must end in .jsonl and be in one of these folders: {folders}"
    )


async def test_file_that_cannot_be_read_is_told(home: HomeAssistant, told, folder: Path) -> None:
    with pytest.raises(HomeAssistantError, match="No such file"):
        await act(home, "import_memories", filename="exports/none.jsonl")


async def test_pipe_is_refused_and_stops_nothing(home: HomeAssistant, told, folder: Path) -> None:
    await home.async_add_executor_job(os.mkfifo, folder / "memories.jsonl")

    with pytest.raises(HomeAssistantError, match="not a regular file"):
        await act(home, "import_memories", filename="exports/memories.jsonl")

    assert (await act(home, "remember", text="Geese are bad"))["text"] == "Geese are bad"


def fact(row: int, text: str, **more: Any) -> dict[str, Any]:
    """Return a fact in the format of an export."""
    fields = {"kind": "fact", "id": row, "at": 1.0, "private": False, "source": "", "quote": "", "confirmed": 1.0}
    return fields | {"told": 1, "text": text} | more


BAD_MEMORIES: dict[str, tuple[Any, str]] = {
    "unfinished": ({"kind": "fact", "id": 7}, "memory_import_malformed"),
    "no JSON": ("no JSON", "memory_import_malformed"),
    "no value of JSON": ({"text": {1, 2}}, "memory_import_malformed"),
    "unknown person": (fact(9, "Geese are bad", person="someone of another home"), "memory_import_unknown_person"),
}


async def test_after_a_bad_memory_nothing_is_imported(home: HomeAssistant, entry, subtests: pytest.Subtests) -> None:
    for defect, (memory, key) in BAD_MEMORIES.items():
        with subtests.test(defect):
            facts = await list_all_facts(home)

            with pytest.raises(ServiceValidationError) as refused:
                await act(home, "import_memories", memories=[fact(8, BINS), memory])

            assert refused.value.translation_key == key
            assert refused.value.translation_placeholders == {"line": "2"}
            assert await list_all_facts(home) == facts


async def test_file_that_is_no_text_is_told(home: HomeAssistant, entry, folder: Path) -> None:
    content = json.dumps(fact(8, BINS)).encode() + b"\n\xff\xfe" + b"x" * 20_000
    await home.async_add_executor_job((folder / "memories.jsonl").write_bytes, content)

    with pytest.raises(ServiceValidationError, match="malformed"):
        await act(home, "import_memories", filename="exports/memories.jsonl")

    assert await list_all_facts(home) == set()


async def test_memories_of_one_person_of_another_home_become_those_of_one_of_this(
    home: HomeAssistant, entry, people: People
) -> None:
    memories = [fact(8, BINS), fact(9, DENTIST, person="theirs", private=True)]

    await act(home, "import_memories", people.admin, memories=memories, person="person.ada")

    assert await texts(home, people.ada) == [DENTIST, BINS]
    assert await texts(home, people.grace) == [BINS]


async def test_memories_of_several_people_do_not_become_those_of_one(home: HomeAssistant, entry, people) -> None:
    memories = [fact(8, DENTIST, person="hers", private=True), fact(9, HANSEN, person="his", private=True)]

    with pytest.raises(ServiceValidationError, match="memories of several people"):
        await act(home, "import_memories", memories=memories, person="person.ada")

    assert await list_all_facts(home) == set()


# Tests for a memory that is unavailable.
@pytest.mark.usefixtures("folder")
async def test_memory_that_cannot_be_used_is_told(
    home: HomeAssistant, set_up: SetUpFn, people: People, store_path: Path, subtests: pytest.Subtests
) -> None:
    entry = await set_up()
    await stop(home, entry)
    await home.async_add_executor_job(store_path.unlink)
    await home.async_add_executor_job(store_path.mkdir)
    # The `set_up` helpers are not used, because they would wait for the store's background task.
    assert await home.config_entries.async_setup(entry.entry_id)

    for action, data in (MEMORY_ACTIONS | TURN_ACTIONS).items():
        with subtests.test(action):
            with pytest.raises(HomeAssistantError) as refused:
                await act(home, action, people.admin, **data)

            assert refused.value.translation_key == "memory_unavailable"


async def test_before_the_first_account_there_is_no_memory(
    home: HomeAssistant, entry, subtests: pytest.Subtests
) -> None:
    await home.config_entries.async_remove(entry.entry_id)
    ada = await home.auth.async_create_user("Ada")

    for action, data in MEMORY_ACTIONS.items():
        with subtests.test(action):
            with pytest.raises(HomeAssistantError) as refused:
                await act(home, action, **data, person=ada.id)

            assert refused.value.translation_key == "memory_unavailable"


async def test_memory_that_is_full_is_told(home: HomeAssistant, entry, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("custom_components.windowed_conversation.memory.core.rows.MAX_FACTS", 1)
    await act(home, "remember", text=BINS)

    for action, data in (("remember", {"text": TEA}), ("import_memories", {"memories": [fact(8, TEA)]})):
        with pytest.raises(ServiceValidationError, match="Memory is full"):
            await act(home, action, **data)
