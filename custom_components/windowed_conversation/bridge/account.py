"""The provider of an account, its models with their prices, and the cached model list of its server.

All accounts share their HTTP clients. An SDK is imported in the import executor when the first account needs it. SDK
clients are built in the executor, too, because they look up the platform.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from itertools import islice
from typing import Any, NamedTuple, cast
from urllib.parse import urlsplit

from homeassistant.const import CONF_API_KEY, CONF_URL, EVENT_HOMEASSISTANT_CLOSE
from homeassistant.core import Event, HomeAssistant, callback
from homeassistant.helpers.httpx_client import SERVER_SOFTWARE, HassHttpXAsyncClient
from homeassistant.helpers.importlib import async_import_module
from homeassistant.util.hass_dict import HassKey
from homeassistant.util.ssl import SSL_ALPN_HTTP11, client_context
import httpx2

from .. import const
from ..const import DEFAULT_OPENAI_FORMAT, DOMAIN, OPENAI_URL, OpenAIFormat
from ..providers import ListedModel, ModelProfile, Provider, Usage, Vendor, find_profile, fix_surrogates, preconnect
from ..store import do_nothing
from ..window import is_int_in_range

_PROVIDERS_PACKAGE = f"{__package__.rpartition('.')[0]}.providers"

_VENDOR_BY_PROVIDER = {
    const.PROVIDER_OPENAI: Vendor.OPENAI,
    const.PROVIDER_AZURE: Vendor.AZURE,
    const.PROVIDER_ANTHROPIC: Vendor.ANTHROPIC,
    const.PROVIDER_GEMINI: Vendor.GOOGLE,
}

_OPENROUTER_HOST = "openrouter.ai"

# The shared HTTP clients by class. There can be two, because an SDK may not support the HTTP package that Home
# Assistant uses.
_HTTP_CLIENTS_KEY: HassKey[dict[type[Any], Any]] = HassKey(f"{DOMAIN}_http_clients")

# Idle connections stay open for two minutes. Home Assistant's shared client closes them after 15 seconds, which is
# sooner than most people speak again.
_POOL_LIMITS = httpx2.Limits(max_keepalive_connections=32, keepalive_expiry=120)

# The folders of `providers/` for accounts that do not use one of OpenAI's formats.
_FOLDER_BY_PROVIDER = {const.PROVIDER_ANTHROPIC: "anthropic", const.PROVIDER_GEMINI: "gemini"}

# The limits of the stored model list: ten times as many models as a router offers, and ids that a person can still tell
# apart.
_MAX_MODELS = 5000
_MAX_ID_CHARS = 255


async def async_create_provider(hass: HomeAssistant, account: Mapping[str, Any]) -> Provider:
    """Return the provider for the data of an account. Opens no connection."""
    clients, http_client = await _async_import_clients(hass, account), await _async_get_http_client(hass, account)
    return await hass.async_add_executor_job(_create_provider, account, clients, http_client)


async def async_open_connection(hass: HomeAssistant, account: Mapping[str, Any]) -> None:
    """Open a connection that the account's next request will use. Sends no key. Raises `ProviderError`."""
    await preconnect(await _async_get_http_client(hass, account), account[CONF_URL])


def get_vendor(account: Mapping[str, Any]) -> Vendor | None:
    """Return the vendor of an account's models, or None for an OpenAI-compatible server."""
    if account[const.CONF_PROVIDER] == const.PROVIDER_OPENAI_CHAT and account[CONF_URL] == OPENAI_URL:
        return Vendor.OPENAI
    return _VENDOR_BY_PROVIDER.get(account[const.CONF_PROVIDER])


def is_local_server(account: Mapping[str, Any]) -> bool:
    """Return whether an account's server runs at home: a compatible server without an API key, which costs nothing."""
    return bool(account[const.CONF_PROVIDER] == const.PROVIDER_OPENAI_CHAT) and CONF_API_KEY not in account


def can_shorten(account: Mapping[str, Any]) -> bool:
    """Return whether an account's provider can shorten old turns by itself, with context editing or compaction."""
    return bool(account[const.CONF_PROVIDER] == const.PROVIDER_ANTHROPIC) or can_compact(account)


def can_compact(account: Mapping[str, Any]) -> bool:
    """Return whether an account's provider can compact conversations, as OpenAI's Responses format can.

    Azure's servers can do so too: https://learn.microsoft.com/azure/foundry/reference/rest/compactconversation
    """
    return account[const.CONF_PROVIDER] in (const.PROVIDER_OPENAI, const.PROVIDER_AZURE) and _uses_responses(account)


def can_search(account: Mapping[str, Any]) -> bool:
    """Return whether an account's provider can search the web, depending on the model."""
    if account[const.CONF_PROVIDER] == const.PROVIDER_OPENAI_CHAT:
        return bool(urlsplit(account[CONF_URL]).hostname == _OPENROUTER_HOST)
    return account[const.CONF_PROVIDER] in (const.PROVIDER_ANTHROPIC, const.PROVIDER_GEMINI) or can_compact(account)


def _create_provider(account: Mapping[str, Any], clients: Any, http_client: Any) -> Provider:
    url, key = account[CONF_URL], account.get(CONF_API_KEY)
    match account[const.CONF_PROVIDER]:
        case const.PROVIDER_ANTHROPIC:
            provider = clients.create_anthropic_messages(url, key, http_client)
        case const.PROVIDER_GEMINI:
            provider = clients.GeminiProvider(url, key, http_client)
        case const.PROVIDER_AZURE:
            server = clients.AzureServer(url, key, account.get(const.CONF_API_VERSION, ""))
            build = clients.create_azure_responses if _uses_responses(account) else clients.create_azure_chat
            provider = build(server, http_client)
        case const.PROVIDER_OPENAI:
            build = clients.create_openai_responses if _uses_responses(account) else clients.create_openai_chat
            provider = build(key, http_client, url)
        case _ if url == OPENAI_URL:
            provider = clients.create_openai_chat(key, http_client)
        case _:
            provider = clients.create_compatible_chat(url, key, http_client)
    return cast("Provider", provider)


def _uses_responses(account: Mapping[str, Any]) -> bool:
    return bool(account.get(const.CONF_FORMAT, DEFAULT_OPENAI_FORMAT) == OpenAIFormat.RESPONSES)


async def _async_import_clients(hass: HomeAssistant, account: Mapping[str, Any]) -> Any:
    folder = _FOLDER_BY_PROVIDER.get(account[const.CONF_PROVIDER], "openai")
    return await async_import_module(hass, f"{_PROVIDERS_PACKAGE}.{folder}.clients")


async def _async_get_http_client(hass: HomeAssistant, account: Mapping[str, Any]) -> Any:
    """Return the HTTP client for an account: Home Assistant's client class if the SDK supports it, or the SDK's own."""
    client = _get_http_client(hass, HassHttpXAsyncClient)
    if account[const.CONF_PROVIDER] != const.PROVIDER_ANTHROPIC:
        return client
    clients = await _async_import_clients(hass, account)
    return client if clients.supports_client(client) else _get_http_client(hass, clients.HttpClient)


def _get_http_client(hass: HomeAssistant, kind: type[Any]) -> Any:
    """Return the shared client of a class. It is closed when Home Assistant closes.

    Built here because Home Assistant's helper for creating clients does not let the caller choose the limits.
    """
    clients = hass.data.setdefault(_HTTP_CLIENTS_KEY, {})
    if kind not in clients:
        context = client_context(alpn_protocols=SSL_ALPN_HTTP11)
        client = clients[kind] = kind(verify=context, headers={"User-Agent": SERVER_SOFTWARE}, limits=_POOL_LIMITS)

        async def close(_event: Event) -> None:
            await client.aclose()

        hass.bus.async_listen_once(EVENT_HOMEASSISTANT_CLOSE, close)
    return clients[kind]


# Few, because some models have higher prices for long requests.
_PRICED_TOKENS = 1_000


class ModelUsage(NamedTuple):
    """The usage of one request. `family` is the model's name or, on Azure, the name of the deployment's model."""

    vendor: Vendor
    family: str
    usage: Usage
    is_flexible: bool = False


async def async_model_profile(
    hass: HomeAssistant, vendor: Vendor | None, family: str, name: str, models: Sequence[ListedModel]
) -> ModelProfile:
    """Return the profile of a model, with the limits and capabilities that the provider's model list has for `name`.

    `family` is the same as `name`, except on Azure, where it is the model that the user has entered for the deployment.
    """
    profile = find_profile(vendor, family)
    listed = next((model for model in models if model.id == name.removeprefix("models/")), None)
    context = listed.context_tokens if listed else None
    if context is None and vendor is not None:
        prices = await _async_import_prices(hass)
        context = await hass.async_add_executor_job(prices.find_context_tokens, vendor, family)
    if listed is None:
        return replace(profile, context_tokens=context)
    return replace(profile, context_tokens=context, output_tokens=listed.output_tokens, **listed.capabilities)


async def async_calculate_cost(hass: HomeAssistant, usages: Collection[ModelUsage]) -> Decimal | None:
    """Return the cost of requests in US dollars, or None if any of the prices is unknown.

    The cost is calculated for each request, because some models have higher prices for long requests.
    """
    prices = await _async_import_prices(hass)
    return await hass.async_add_executor_job(_sum_costs, prices, usages)


def _sum_costs(prices: Any, usages: Collection[ModelUsage]) -> Decimal | None:
    costs = [prices.calculate_cost(use.vendor, use.family, use.usage, is_flexible=use.is_flexible) for use in usages]
    return None if None in costs else sum(costs, Decimal())


async def async_find_cache_discount(hass: HomeAssistant, vendor: Vendor, family: str) -> Decimal | None:
    """Return the discount on a cached input token in US dollars, or None if the price is unknown."""
    sizes = [Usage(input=_PRICED_TOKENS), Usage(input=_PRICED_TOKENS, cached=_PRICED_TOKENS)]
    full, cached = [await async_calculate_cost(hass, [ModelUsage(vendor, family, each)]) for each in sizes]
    return None if full is None or cached is None else (full - cached) / _PRICED_TOKENS


async def async_list_families(hass: HomeAssistant, vendor: Vendor) -> list[str]:
    """Return a vendor's known model names, for deployments whose own names do not identify their models."""
    prices = await _async_import_prices(hass)
    names: list[str] = await hass.async_add_executor_job(prices.list_priced_models, vendor)
    return names


async def _async_import_prices(hass: HomeAssistant) -> Any:
    return await async_import_module(hass, f"{_PROVIDERS_PACKAGE}.prices")


class ServerCache:
    """The model list that a server sent last, with token limits. Used while the server is away; survives a reload."""

    def __init__(self) -> None:
        self.models: tuple[ListedModel, ...] = ()
        # The time since which the server does not respond, or None.
        self.away_at: datetime | None = None
        # The time of the first request without a response since the server last responded, in seconds on the event
        # loop's clock, or None.
        self.unanswered_since: float | None = None
        # The time at which the server last answered a turn since Home Assistant started, or None.
        self.answered_at: datetime | None = None
        # Called after each change of the list.
        self.save_soon: Callable[[], None] = do_nothing

    def restore(self, stored: object) -> None:
        """Load the stored list without its invalid entries, unless the server has already sent a list."""
        self.models = self.models or tuple(islice(_iter_valid_models(stored), _MAX_MODELS))

    def models_as_list(self) -> list[list[str | int | None]]:
        """Return the list of models in the form in which it is stored."""
        return [[model.id, model.context_tokens, model.output_tokens] for model in self.models]

    @callback
    def update_models(self, models: Sequence[ListedModel]) -> None:
        """Replace the list. Skips ids that cannot be stored: too long, or with a lone surrogate."""
        storable = (each for each in models if len(each.id) <= _MAX_ID_CHARS and fix_surrogates(each.id) == each.id)
        self.models = tuple(islice(storable, _MAX_MODELS))
        self.save_soon()

    @callback
    def clear(self) -> None:
        """Clear the list and the availability, because the account now has another server."""
        self.away_at = self.unanswered_since = self.answered_at = None
        self.update_models(())


def _iter_valid_models(stored: object) -> Iterator[ListedModel]:
    for model in stored if isinstance(stored, list) else ():
        match model:
            case [str(name), context, output] if _is_valid_limit(context) and _is_valid_limit(output):
                yield ListedModel(name, context, output)


def _is_valid_limit(value: object) -> bool:
    return value is None or is_int_in_range(value, 1)
