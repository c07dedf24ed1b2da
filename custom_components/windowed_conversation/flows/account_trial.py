"""Trial of an account before it is stored: real requests that list its models and send one of them a short prompt."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from homeassistant.const import CONF_URL
from homeassistant.core import HomeAssistant

from .. import providers
from ..bridge.account import async_create_provider, is_local_server
from ..const import (
    CONF_API_VERSION,
    CONF_FORMAT,
    CONF_PROVIDER,
    PROVIDER_AZURE,
    PROVIDER_OPENAI,
    PROVIDER_OPENAI_CHAT,
    OpenAIFormat,
)
from ..window import Message

# Errors that the user can fix in the account's form, with another key or another value.
ACCOUNT_ERRORS = frozenset({"invalid_auth", "wrong_api_version"})
# Errors that the user can fix by choosing another model.
MODEL_ERRORS = frozenset({"no_such_deployment", "no_such_model", "unsuitable_model"})

# Providers whose API is usually under `/v1`.
_V1_PATH_PROVIDERS = (PROVIDER_OPENAI, PROVIDER_OPENAI_CHAT)

# If an error matches several of these types, the first one applies.
_LIST_ERROR_KEYS: dict[type[providers.ProviderError], str] = {
    providers.AuthError: "invalid_auth",
    providers.BadRequest: "not_compatible",
    providers.BadStream: "not_compatible",
    providers.QuotaError: "no_credit",
    providers.RateLimited: "rate_limited",
}
_MODEL_ERROR_KEYS: dict[type[providers.ProviderError], str] = {
    providers.ModelNotFound: "no_such_model",
    **_LIST_ERROR_KEYS,
    providers.BadRequest: "unsuitable_model",
}

_TRIAL_MESSAGES = (Message.system("Answer with one word."), Message.user("Say ok."))
# A reasoning model may need this many tokens for the shortest answer, and OpenAI accepts no smaller limit than 16.
_MAX_TRIAL_TOKENS = 16
_TRIAL_TIMEOUT = 15.0


@dataclass(frozen=True, slots=True)
class VerifiedAccount:
    """An account whose server responds, with its models. `data` contains the base URL that worked."""

    data: dict[str, Any]
    provider: providers.Provider
    models: list[providers.ListedModel]


@dataclass(frozen=True, slots=True)
class RejectedAccount:
    """An account that cannot be used: the key of the form's error, and the URL after a redirect, if any."""

    error_key: str
    redirect_url: str = ""


async def async_try_account(
    hass: HomeAssistant, account: dict[str, Any], urls: Sequence[str]
) -> VerifiedAccount | RejectedAccount:
    """List the models of an account's server, using the first of the given base URLs that can be reached."""
    try:
        return await _async_try_urls(hass, account, urls)
    except providers.Redirected as err:
        return RejectedAccount("redirected", err.address)
    except providers.ProviderError as err:
        key = _find_error_key(_LIST_ERROR_KEYS, err)
        wrong_version = isinstance(err, providers.BadRequest) and CONF_API_VERSION in account
        return RejectedAccount("wrong_api_version" if wrong_version else key)


async def async_try_model(account: VerifiedAccount, model: str) -> str | None:
    """Send the model a short prompt. Return the key of the form's error, or None for any answer, even a truncated one.

    A model of a server without a key is not tried, because the server may have to load it first.
    """
    if is_local_server(account.data):
        return None
    request = providers.Request(model, _TRIAL_MESSAGES, max_answer_tokens=_MAX_TRIAL_TOKENS)
    try:
        await _async_send_request(account.provider, request)
    except providers.Incomplete, providers.AnswerRefused, providers.RateLimited:
        return None
    except providers.ProviderError as err:
        key = _find_error_key(_MODEL_ERROR_KEYS, err)
        if key == "no_such_model" and account.data[CONF_PROVIDER] == PROVIDER_AZURE:
            return "no_such_deployment"
        # older API versions list models, but do not support the request format
        wrong_version = key == "unsuitable_model" and CONF_API_VERSION in account.data
        is_new_format = account.data.get(CONF_FORMAT) == OpenAIFormat.RESPONSES
        return "wrong_api_version" if wrong_version and is_new_format else key
    return None


async def _async_try_urls(hass: HomeAssistant, account: dict[str, Any], urls: Sequence[str]) -> VerifiedAccount:
    *others, last = urls
    for url in others:
        with suppress(*providers.CONNECTION_ERRORS):
            return await _async_try_base_url(hass, {**account, CONF_URL: url})
    return await _async_try_base_url(hass, {**account, CONF_URL: last})


async def _async_try_base_url(hass: HomeAssistant, account: dict[str, Any]) -> VerifiedAccount:
    """List the models at the base URL, adding `/v1` if a URL without a path needs it.

    The URL with `/v1` is tried first, because some servers list their models at both URLs but answer requests at one.
    """
    if account[CONF_PROVIDER] in _V1_PATH_PROVIDERS and not urlsplit(account[CONF_URL]).path:
        try:
            return await _async_list_models(hass, {**account, CONF_URL: f"{account[CONF_URL]}/v1"})
        except providers.Redirected:
            raise
        except providers.BadRequest, providers.BadStream:
            pass
    return await _async_list_models(hass, account)


async def _async_list_models(hass: HomeAssistant, account: dict[str, Any]) -> VerifiedAccount:
    provider = await async_create_provider(hass, account)
    return VerifiedAccount(account, provider, await provider.list_models())


async def _async_send_request(provider: providers.Provider, request: providers.Request) -> None:
    ask = provider.send_unstreamed if isinstance(provider, providers.SupportsUnstreamedAnswers) else provider.stream
    try:
        async with asyncio.timeout(_TRIAL_TIMEOUT), aclosing(ask(request)) as events:
            async for _ in events:
                pass
    except TimeoutError as err:
        raise providers.DeadlineExceeded("no whole answer in time") from err


def _find_error_key(errors: Mapping[type[providers.ProviderError], str], error: providers.ProviderError) -> str:
    if isinstance(error, providers.Unavailable) and error.has_answered:
        return "server_failed"
    return next((key for kind, key in errors.items() if isinstance(error, kind)), "cannot_connect")
