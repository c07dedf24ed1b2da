"""Creates a provider from an account's data, on Home Assistant's HTTP client and without blocking.

An SDK is imported in the import executor when the first account needs it, Google's when the first account is tried or
counts, never earlier. Its clients are built in the
executor, too, because they look up the platform.
"""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

from homeassistant.const import CONF_API_KEY, CONF_URL, EVENT_HOMEASSISTANT_CLOSE
from homeassistant.core import Event, HomeAssistant
from homeassistant.helpers.httpx_client import get_async_client
from homeassistant.helpers.importlib import async_import_module
from homeassistant.util.hass_dict import HassKey
from homeassistant.util.ssl import client_context

from ..const import (
    CONF_API_VERSION,
    CONF_FORMAT,
    CONF_PROVIDER,
    DEFAULT_FORMAT,
    DOMAIN,
    OPENAI_URL,
    PROVIDER_ANTHROPIC,
    PROVIDER_AZURE,
    PROVIDER_GEMINI,
    PROVIDER_OPENAI,
    PROVIDER_OPENAI_CHAT,
    OpenAIFormat,
)
from ..providers import Provider, Vendor

_PROVIDERS = f"{__package__.rpartition('.')[0]}.providers"

_VENDORS = {
    PROVIDER_OPENAI: Vendor.OPENAI,
    PROVIDER_AZURE: Vendor.AZURE,
    PROVIDER_ANTHROPIC: Vendor.ANTHROPIC,
    PROVIDER_GEMINI: Vendor.GOOGLE,
}

# A client for an SDK that does not run on the package whose client Home Assistant shares.
_OWN_CLIENT: HassKey[Any] = HassKey(f"{DOMAIN}_http_client")

type _Build = Callable[[HomeAssistant, Mapping[str, Any]], Awaitable[Provider]]


async def async_create_provider(hass: HomeAssistant, account: Mapping[str, Any]) -> Provider:
    """Return the provider for an account's data. Opens no connection."""
    return await _BUILDS[account[CONF_PROVIDER]](hass, account)


def vendor_of(account: Mapping[str, Any]) -> Vendor | None:
    """Return the vendor of an account's models, or None for a compatible server."""
    if account[CONF_PROVIDER] == PROVIDER_OPENAI_CHAT and account[CONF_URL] == OPENAI_URL:
        return Vendor.OPENAI
    return _VENDORS.get(account[CONF_PROVIDER])


def is_at_home(account: Mapping[str, Any]) -> bool:
    """Return whether an account's server runs at home: a compatible server without a key, which costs nothing."""
    return bool(account[CONF_PROVIDER] == PROVIDER_OPENAI_CHAT) and CONF_API_KEY not in account


def can_shorten(account: Mapping[str, Any]) -> bool:
    """Return whether an account's provider can shorten old turns by itself, by context editing or compaction."""
    return bool(account[CONF_PROVIDER] == PROVIDER_ANTHROPIC) or can_compact(account)


def can_compact(account: Mapping[str, Any]) -> bool:
    """Return whether an account's provider can compact conversations, as OpenAI's Responses format can.

    So can Azure's servers: https://learn.microsoft.com/azure/foundry/reference/rest/compactconversation
    """
    return account[CONF_PROVIDER] in (PROVIDER_OPENAI, PROVIDER_AZURE) and _speaks_responses(account)


async def _async_compatible(hass: HomeAssistant, account: Mapping[str, Any]) -> Provider:
    clients = await _async_clients(hass, "openai.clients")
    url, key = account[CONF_URL], account.get(CONF_API_KEY)
    if url == OPENAI_URL:
        return await hass.async_add_executor_job(clients.openai_chat, key, get_async_client(hass))
    return await hass.async_add_executor_job(clients.chat_completions, url, key, get_async_client(hass))


async def _async_openai(hass: HomeAssistant, account: Mapping[str, Any]) -> Provider:
    clients = await _async_clients(hass, "openai.clients")
    build = clients.openai_responses if _speaks_responses(account) else clients.openai_chat
    return await hass.async_add_executor_job(build, account[CONF_API_KEY], get_async_client(hass), account[CONF_URL])


async def _async_azure(hass: HomeAssistant, account: Mapping[str, Any]) -> Provider:
    clients = await _async_clients(hass, "openai.clients")
    server = clients.AzureServer(account[CONF_URL], account[CONF_API_KEY], account.get(CONF_API_VERSION, ""))
    build = clients.azure_responses if _speaks_responses(account) else clients.azure_chat
    return await hass.async_add_executor_job(build, server, get_async_client(hass))


async def _async_anthropic(hass: HomeAssistant, account: Mapping[str, Any]) -> Provider:
    clients = await _async_clients(hass, "anthropic.clients")
    shared = get_async_client(hass)
    http_client = shared if clients.accepts(shared) else _own_client(hass, clients.own_http_client)
    url, key = account[CONF_URL], account[CONF_API_KEY]
    return await hass.async_add_executor_job(clients.anthropic_messages, url, key, http_client)


async def _async_gemini(hass: HomeAssistant, account: Mapping[str, Any]) -> Provider:
    clients = await _async_clients(hass, "gemini.clients")
    url, key = account[CONF_URL], account[CONF_API_KEY]
    build = partial(clients.gemini, import_module=partial(async_import_module, hass))
    return await hass.async_add_executor_job(build, url, key, get_async_client(hass), client_context())


_BUILDS: dict[str, _Build] = {
    PROVIDER_OPENAI_CHAT: _async_compatible,
    PROVIDER_OPENAI: _async_openai,
    PROVIDER_AZURE: _async_azure,
    PROVIDER_ANTHROPIC: _async_anthropic,
    PROVIDER_GEMINI: _async_gemini,
}


def _speaks_responses(account: Mapping[str, Any]) -> bool:
    return bool(account.get(CONF_FORMAT, DEFAULT_FORMAT) == OpenAIFormat.RESPONSES)


async def _async_clients(hass: HomeAssistant, module: str) -> Any:
    return await async_import_module(hass, f"{_PROVIDERS}.{module}")


def _own_client(hass: HomeAssistant, create: Callable[..., Any]) -> Any:
    if _OWN_CLIENT not in hass.data:
        client = hass.data[_OWN_CLIENT] = create(client_context())

        async def close(_event: Event) -> None:
            await client.aclose()

        hass.bus.async_listen_once(EVENT_HOMEASSISTANT_CLOSE, close)
    return hass.data[_OWN_CLIENT]
