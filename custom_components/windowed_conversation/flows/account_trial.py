"""Trying an account before it is stored: real calls that list its models and ask one of them for a word."""

import asyncio
from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from homeassistant.const import CONF_URL
from homeassistant.core import HomeAssistant

from ..bridge.account import async_create_provider, is_at_home
from ..const import CONF_API_VERSION, CONF_FORMAT, CONF_PROVIDER, PROVIDER_OPENAI_CHAT, OpenAIFormat
from ..providers import (
    AnswersWhole,
    AuthError,
    BadRequest,
    BadStream,
    DeadlineExceeded,
    Incomplete,
    ListedModel,
    ModelNotFound,
    Provider,
    ProviderError,
    QuotaError,
    RateLimited,
    Redirected,
    Refused,
    Request,
)
from ..window import Message

# Errors that another key, or another value in the account's form, can fix.
OF_THE_ACCOUNT = frozenset({"invalid_auth", "wrong_api_version"})
# Errors of the chosen model.
OF_THE_MODEL = frozenset({"no_such_model", "unsuitable_model"})

# Of several that fit, the first counts.
_LIST_ERRORS: dict[type[ProviderError], str] = {
    AuthError: "invalid_auth",
    BadRequest: "not_compatible",
    BadStream: "not_compatible",
    QuotaError: "no_credit",
    RateLimited: "rate_limited",
}
_MODEL_ERRORS: dict[type[ProviderError], str] = {
    ModelNotFound: "no_such_model",
    **_LIST_ERRORS,
    BadRequest: "unsuitable_model",
}

_TRIAL = (Message.system("Answer with one word."), Message.user("Say ok."))
# A model that thinks may need this many tokens to say that it is there; OpenAI takes no fewer than 16.
_TRIAL_TOKENS = 16
_TRIAL_SECONDS = 15.0


@dataclass(frozen=True, slots=True)
class TriedAccount:
    """An account whose server responds, and its models; `data` has the URL that was found."""

    data: dict[str, Any]
    provider: Provider
    models: list[ListedModel]


@dataclass(frozen=True, slots=True)
class RejectedAccount:
    """An account that cannot be used: the key of the form's error, and the server's new address, if any."""

    error: str
    address: str = ""


async def async_try_account(hass: HomeAssistant, account: dict[str, Any]) -> TriedAccount | RejectedAccount:
    """Ask the server for its models."""
    try:
        return await _async_find_server(hass, account)
    except Redirected as err:
        return RejectedAccount("redirected", err.address)
    except ProviderError as err:
        key = _key(_LIST_ERRORS, err)
        wrong_version = isinstance(err, BadRequest) and CONF_API_VERSION in account
        return RejectedAccount("wrong_api_version" if wrong_version else key)


async def async_try_model(account: TriedAccount, model: str) -> str | None:
    """Ask the model for a word. Return the key of the form's error, or None if it answers, even if cut off.

    A server without a key may have to load the model first and is not asked.
    """
    if is_at_home(account.data):
        return None
    request = Request(model, _TRIAL, max_answer_tokens=_TRIAL_TOKENS)
    try:
        await _async_hear(account.provider, request)
    except Incomplete, Refused, RateLimited:
        return None
    except ProviderError as err:
        key = _key(_MODEL_ERRORS, err)
        # older API versions list models, but do not support the format
        wrong_version = key == "unsuitable_model" and CONF_API_VERSION in account.data
        is_new_format = account.data.get(CONF_FORMAT) == OpenAIFormat.RESPONSES
        return "wrong_api_version" if wrong_version and is_new_format else key
    return None


async def _async_find_server(hass: HomeAssistant, account: dict[str, Any]) -> TriedAccount:
    """Find the server, also if the URL of a compatible server lacks `/v1`."""
    provider = await async_create_provider(hass, account)
    try:
        return TriedAccount(account, provider, await provider.list_models())
    except BadRequest, BadStream:
        if account[CONF_PROVIDER] != PROVIDER_OPENAI_CHAT or urlsplit(account[CONF_URL]).path:
            raise
    account = {**account, CONF_URL: f"{account[CONF_URL]}/v1"}
    provider = await async_create_provider(hass, account)
    return TriedAccount(account, provider, await provider.list_models())


async def _async_hear(provider: Provider, request: Request) -> None:
    ask = provider.whole_answer if isinstance(provider, AnswersWhole) else provider.stream
    try:
        async with asyncio.timeout(_TRIAL_SECONDS), aclosing(ask(request)) as events:
            async for _ in events:
                pass
    except TimeoutError as err:
        raise DeadlineExceeded("no whole answer in time") from err


def _key(errors: Mapping[type[ProviderError], str], error: ProviderError) -> str:
    return next((key for kind, key in errors.items() if isinstance(error, kind)), "cannot_connect")
