"""Trying an account before it is stored: real calls that list its models and ask one of them for a word."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from homeassistant.const import CONF_URL
from homeassistant.core import HomeAssistant

from .. import providers
from ..bridge.account import async_create_provider, is_at_home
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

# Errors that another key, or another value in the account's form, can fix.
ACCOUNT_ERRORS = frozenset({"invalid_auth", "wrong_api_version"})
# Errors of the chosen model.
MODEL_ERRORS = frozenset({"no_such_deployment", "no_such_model", "unsuitable_model"})

# Providers whose API is usually under `/v1`.
_UNDER_V1 = (PROVIDER_OPENAI, PROVIDER_OPENAI_CHAT)

# Of several that fit, the first counts.
_LIST_ERRORS: dict[type[providers.ProviderError], str] = {
    providers.AuthError: "invalid_auth",
    providers.BadRequest: "not_compatible",
    providers.BadStream: "not_compatible",
    providers.QuotaError: "no_credit",
    providers.RateLimited: "rate_limited",
}
_MODEL_ERRORS: dict[type[providers.ProviderError], str] = {
    providers.ModelNotFound: "no_such_model",
    **_LIST_ERRORS,
    providers.BadRequest: "unsuitable_model",
}

_TRIAL = (Message.system("Answer with one word."), Message.user("Say ok."))
# A model that thinks may need this many tokens to say that it is there; OpenAI takes no fewer than 16.
_TRIAL_TOKENS = 16
_TRIAL_SECONDS = 15.0


@dataclass(frozen=True, slots=True)
class TriedAccount:
    """An account whose server responds, and its models; `data` has the URL that was found."""

    data: dict[str, Any]
    provider: providers.Provider
    models: list[providers.ListedModel]


@dataclass(frozen=True, slots=True)
class RejectedAccount:
    """An account that cannot be used: the key of the form's error, and the server's new address, if any."""

    error: str
    address: str = ""


async def async_try_account(
    hass: HomeAssistant, account: dict[str, Any], urls: Sequence[str]
) -> TriedAccount | RejectedAccount:
    """Ask the server for its models, under the first of some URLs where one can be reached."""
    try:
        return await _async_find_server(hass, account, urls)
    except providers.Redirected as err:
        return RejectedAccount("redirected", err.address)
    except providers.ProviderError as err:
        key = _error_key(_LIST_ERRORS, err)
        wrong_version = isinstance(err, providers.BadRequest) and CONF_API_VERSION in account
        return RejectedAccount("wrong_api_version" if wrong_version else key)


async def async_try_model(account: TriedAccount, model: str) -> str | None:
    """Ask the model for a word. Return the key of the form's error, or None if it answers, even if cut off.

    A server without a key may have to load the model first and is not asked.
    """
    if is_at_home(account.data):
        return None
    request = providers.Request(model, _TRIAL, max_answer_tokens=_TRIAL_TOKENS)
    try:
        await _async_ask(account.provider, request)
    except providers.Incomplete, providers.Refused, providers.RateLimited:
        return None
    except providers.ProviderError as err:
        key = _error_key(_MODEL_ERRORS, err)
        if key == "no_such_model" and account.data[CONF_PROVIDER] == PROVIDER_AZURE:
            return "no_such_deployment"
        # older API versions list models, but do not support the format
        wrong_version = key == "unsuitable_model" and CONF_API_VERSION in account.data
        is_new_format = account.data.get(CONF_FORMAT) == OpenAIFormat.RESPONSES
        return "wrong_api_version" if wrong_version and is_new_format else key
    return None


async def _async_find_server(hass: HomeAssistant, account: dict[str, Any], urls: Sequence[str]) -> TriedAccount:
    *others, last = urls
    for url in others:
        with suppress(*providers.CONNECTION_ERRORS):
            return await _async_find_api(hass, {**account, CONF_URL: url})
    return await _async_find_api(hass, {**account, CONF_URL: last})


async def _async_find_api(hass: HomeAssistant, account: dict[str, Any]) -> TriedAccount:
    """Find a server's API: a URL without a path probably lacks `/v1`.

    That one is tried first, as some servers list their models under both and answer under one.
    """
    if account[CONF_PROVIDER] in _UNDER_V1 and not urlsplit(account[CONF_URL]).path:
        try:
            return await _async_list_models(hass, {**account, CONF_URL: f"{account[CONF_URL]}/v1"})
        except providers.Redirected:
            raise
        except providers.BadRequest, providers.BadStream:
            pass
    return await _async_list_models(hass, account)


async def _async_list_models(hass: HomeAssistant, account: dict[str, Any]) -> TriedAccount:
    provider = await async_create_provider(hass, account)
    return TriedAccount(account, provider, await provider.list_models())


async def _async_ask(provider: providers.Provider, request: providers.Request) -> None:
    ask = provider.unstreamed_answer if isinstance(provider, providers.AnswersUnstreamed) else provider.stream
    try:
        async with asyncio.timeout(_TRIAL_SECONDS), aclosing(ask(request)) as events:
            async for _ in events:
                pass
    except TimeoutError as err:
        raise providers.DeadlineExceeded("no whole answer in time") from err


def _error_key(errors: Mapping[type[providers.ProviderError], str], error: providers.ProviderError) -> str:
    if isinstance(error, providers.Unavailable) and error.has_answered:
        return "server_failed"
    return next((key for kind, key in errors.items() if isinstance(error, kind)), "cannot_connect")
