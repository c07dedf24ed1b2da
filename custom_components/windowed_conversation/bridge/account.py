"""Creates a provider from an account's data, on an HTTP client that all accounts share, and without blocking.

An SDK is imported in the import executor when the first account needs it, Google's when the first account is tried or
counts, never earlier. Its clients are built in the executor, too, because they look up the platform.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any, cast

from homeassistant.const import CONF_API_KEY, CONF_URL, EVENT_HOMEASSISTANT_CLOSE
from homeassistant.core import Event, HomeAssistant, callback
from homeassistant.helpers.httpx_client import SERVER_SOFTWARE, HassHttpXAsyncClient
from homeassistant.helpers.importlib import async_import_module
from homeassistant.util.hass_dict import HassKey
from homeassistant.util.ssl import SSL_ALPN_HTTP11, client_context
import httpx2

from .. import const
from ..const import DEFAULT_FORMAT, DOMAIN, OPENAI_URL, OpenAIFormat
from ..providers import Provider, Vendor, open_connection

_PROVIDERS = f"{__package__.rpartition('.')[0]}.providers"

_VENDORS = {
    const.PROVIDER_OPENAI: Vendor.OPENAI,
    const.PROVIDER_AZURE: Vendor.AZURE,
    const.PROVIDER_ANTHROPIC: Vendor.ANTHROPIC,
    const.PROVIDER_GEMINI: Vendor.GOOGLE,
}

# The HTTP clients by their class: an SDK may not run on the package that Home Assistant uses.
_HTTP_CLIENTS: HassKey[dict[type[Any], Any]] = HassKey(f"{DOMAIN}_http_clients")

# Idle connections stay for two minutes: Home Assistant's shared client closes them after 15 seconds, which is before
# most people say something again.
_LIMITS = httpx2.Limits(max_keepalive_connections=32, keepalive_expiry=120)

# The folders of `providers` for accounts that do not speak one of OpenAI's formats.
_FOLDERS = {const.PROVIDER_ANTHROPIC: "anthropic", const.PROVIDER_GEMINI: "gemini"}


async def async_create_provider(hass: HomeAssistant, account: Mapping[str, Any]) -> Provider:
    """Return the provider for an account's data. Opens no connection."""
    clients, http_client = await _async_clients(hass, account), await _async_http_client(hass, account)
    return await hass.async_add_executor_job(_create, hass, account, clients, http_client)


async def async_open_connection(hass: HomeAssistant, account: Mapping[str, Any]) -> None:
    """Open a connection that the account's next request will use. Sends no key. Raises `ProviderError`."""
    await open_connection(await _async_http_client(hass, account), account[CONF_URL])


def vendor_of(account: Mapping[str, Any]) -> Vendor | None:
    """Return the vendor of an account's models, or None for a compatible server."""
    if account[const.CONF_PROVIDER] == const.PROVIDER_OPENAI_CHAT and account[CONF_URL] == OPENAI_URL:
        return Vendor.OPENAI
    return _VENDORS.get(account[const.CONF_PROVIDER])


def is_at_home(account: Mapping[str, Any]) -> bool:
    """Return whether an account's server runs at home: a compatible server without a key, which costs nothing."""
    return bool(account[const.CONF_PROVIDER] == const.PROVIDER_OPENAI_CHAT) and CONF_API_KEY not in account


def can_shorten(account: Mapping[str, Any]) -> bool:
    """Return whether an account's provider can shorten old turns by itself, by context editing or compaction."""
    return bool(account[const.CONF_PROVIDER] == const.PROVIDER_ANTHROPIC) or can_compact(account)


def can_compact(account: Mapping[str, Any]) -> bool:
    """Return whether an account's provider can compact conversations, as OpenAI's Responses format can.

    So can Azure's servers: https://learn.microsoft.com/azure/foundry/reference/rest/compactconversation
    """
    return account[const.CONF_PROVIDER] in (const.PROVIDER_OPENAI, const.PROVIDER_AZURE) and _speaks_responses(account)


def _create(hass: HomeAssistant, account: Mapping[str, Any], clients: Any, http_client: Any) -> Provider:
    url, key = account[CONF_URL], account.get(CONF_API_KEY)
    match account[const.CONF_PROVIDER]:
        case const.PROVIDER_ANTHROPIC:
            provider = clients.anthropic_messages(url, key, http_client)
        case const.PROVIDER_GEMINI:
            load = partial(async_import_module, hass)
            provider = clients.gemini(url, key, http_client, client_context(), import_module=load)
        case const.PROVIDER_AZURE:
            server = clients.AzureServer(url, key, account.get(const.CONF_API_VERSION, ""))
            build = clients.azure_responses if _speaks_responses(account) else clients.azure_chat
            provider = build(server, http_client)
        case const.PROVIDER_OPENAI:
            build = clients.openai_responses if _speaks_responses(account) else clients.openai_chat
            provider = build(key, http_client, url)
        case _ if url == OPENAI_URL:
            provider = clients.openai_chat(key, http_client)
        case _:
            provider = clients.compatible_chat(url, key, http_client)
    return cast("Provider", provider)


def _speaks_responses(account: Mapping[str, Any]) -> bool:
    return bool(account.get(const.CONF_FORMAT, DEFAULT_FORMAT) == OpenAIFormat.RESPONSES)


async def _async_clients(hass: HomeAssistant, account: Mapping[str, Any]) -> Any:
    folder = _FOLDERS.get(account[const.CONF_PROVIDER], "openai")
    return await async_import_module(hass, f"{_PROVIDERS}.{folder}.clients")


async def _async_http_client(hass: HomeAssistant, account: Mapping[str, Any]) -> Any:
    """Return the HTTP client for an account's requests: one of Home Assistant's package, if the SDK runs on it."""
    client = _http_client(hass, HassHttpXAsyncClient)
    if account[const.CONF_PROVIDER] != const.PROVIDER_ANTHROPIC:
        return client
    clients = await _async_clients(hass, account)
    return client if clients.accepts(client) else _http_client(hass, clients.HttpClient)


@callback
def _http_client(hass: HomeAssistant, kind: type[Any]) -> Any:
    """Return the client of a class, which is closed with Home Assistant.

    The helper that creates clients for integrations sets the limits itself.
    """
    clients = hass.data.setdefault(_HTTP_CLIENTS, {})
    if kind not in clients:
        context = client_context(alpn_protocols=SSL_ALPN_HTTP11)
        client = clients[kind] = kind(verify=context, headers={"User-Agent": SERVER_SOFTWARE}, limits=_LIMITS)

        async def close(_event: Event) -> None:
            await client.aclose()

        hass.bus.async_listen_once(EVENT_HOMEASSISTANT_CLOSE, close)
    return clients[kind]
