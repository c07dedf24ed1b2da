"""Installs the package for exact counting in the background."""

from collections.abc import Iterable

from homeassistant.core import HomeAssistant, callback

from ..bridge.exact_counting import PackageMissing, async_exact_counter, async_install
from ..const import Counting
from .agent import AccountConfigEntry
from .issues import async_raise_or_clear_counting


@callback
def async_install_wanted(hass: HomeAssistant, entry: AccountConfigEntry, wanted: Iterable[Counting]) -> None:
    """Install in the background what an account's agents want to count with, and then set the account up again.

    Raises an issue if that fails.
    """

    async def install() -> None:
        was_missing = False
        try:
            for counting in set(wanted):
                was_missing |= await _async_installed(hass, counting)
        except PackageMissing:
            async_raise_or_clear_counting(hass, entry.entry_id, entry.title)
            return
        async_raise_or_clear_counting(hass, entry.entry_id, None)
        if was_missing:
            hass.config_entries.async_schedule_reload(entry.entry_id)

    entry.async_create_background_task(hass, install(), "install what tokens are counted with")


async def _async_installed(hass: HomeAssistant, counting: Counting) -> bool:
    """Return whether the package had to be installed. Raises `PackageMissing` if it is still missing."""
    try:
        await async_exact_counter(hass, counting)
    except PackageMissing:
        await async_install(hass)
        await async_exact_counter(hass, counting)
        return True
    return False
