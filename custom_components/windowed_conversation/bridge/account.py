"""From an account's data to a provider, on Home Assistant's HTTP client and without blocking.

An SDK is imported when the first account needs it, in the import executor, and never before. Its clients are built in
the executor too: they find out about the system that they run on.
"""

from typing import Any

from homeassistant.core import HomeAssistant
from homeassistant.helpers.httpx_client import get_async_client
from homeassistant.helpers.importlib import async_import_module

from ..providers.events import Provider

_PROVIDERS = f"{__package__.rpartition('.')[0]}.providers"


async def async_create_provider(hass: HomeAssistant, url: str, api_key: str | None) -> Provider:
    """Return a provider for a server that speaks Chat Completions; opens no connection."""
    clients: Any = await async_import_module(hass, f"{_PROVIDERS}.openai_clients")
    return await hass.async_add_executor_job(clients.chat_completions, url, api_key, get_async_client(hass))
