"""The list of a server's models on disk: what is kept of it, and what is believed of a file."""

from typing import Any

from homeassistant.core import HomeAssistant
import pytest

from custom_components.windowed_conversation.bridge.known_server import KnownServer, async_load_server
from custom_components.windowed_conversation.const import DOMAIN
from custom_components.windowed_conversation.providers.events import ListedModel

KEY = f"{DOMAIN}.models.one"
GOOD = ListedModel("scripted", 4000, None)

type Storage = dict[str, dict[str, Any]]


def stored(models: object) -> dict[str, Any]:
    """Return a file as Home Assistant keeps it."""
    return {"version": 1, "minor_version": 1, "key": KEY, "data": {"models": models}}


async def test_list_is_read_again(hass: HomeAssistant, hass_storage: Storage) -> None:
    known = KnownServer(hass, "one")
    known.take_in([GOOD, ListedModel("other", None, 100)])
    await known.async_save()

    assert (await async_load_server(hass, "one")).models == (GOOD, ListedModel("other", None, 100))


async def test_list_that_is_the_same_is_not_written_again(hass: HomeAssistant, hass_storage: Storage) -> None:
    file = hass_storage[KEY] = stored([["scripted", 4000, None]])
    known = await async_load_server(hass, "one")

    known.take_in([GOOD])
    await known.async_save()

    assert hass_storage[KEY] is file


async def test_list_without_end_and_names_that_no_file_holds_are_cut(
    hass: HomeAssistant, hass_storage: Storage
) -> None:
    known = KnownServer(hass, "one")
    known.take_in([ListedModel("\ud83d"), ListedModel("a" * 256), *(ListedModel(f"m{n}") for n in range(10_000))])
    await known.async_save()

    again = (await async_load_server(hass, "one")).models
    assert (again[0], len(again)) == (ListedModel("m0"), 5000)


async def test_models_that_cannot_be_are_ignored(hass: HomeAssistant, hass_storage: Storage) -> None:
    figures: tuple[Any, ...] = ("4000", -1, 0, True, 10**12, 0.5, [])
    damaged = [7, "scripted", [], ["a", 1], [7, 1, 1], *(["a", 1, each] for each in figures)]
    hass_storage[KEY] = stored([*damaged, ["scripted", 4000, None], *(["a", each, 1] for each in figures)])

    assert (await async_load_server(hass, "one")).models == (GOOD,)


@pytest.mark.parametrize("data", [None, 7, [], {}, {"models": None}, {"models": {"scripted": 4000}}])
async def test_file_that_is_no_list_is_ignored(hass: HomeAssistant, hass_storage: Storage, data: object) -> None:
    hass_storage[KEY] = stored(None) | {"data": data}

    assert (await async_load_server(hass, "one")).models == ()
