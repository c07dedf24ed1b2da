"""An account before it is stored: the form for each kind with the conversion of its input, and the trial.

The trial sends real requests, which list the account's models and send one of them a short prompt.
"""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from ipaddress import ip_address
import re
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from homeassistant.const import CONF_API_KEY, CONF_URL
from homeassistant.core import HomeAssistant
from homeassistant.data_entry_flow import section
from homeassistant.helpers.selector import TextSelector, TextSelectorConfig, TextSelectorType
import httpx2
import probatio

from .. import const, providers
from ..bridge.account import async_create_provider, is_local_server
from ..window import Message
from .fields import build_choice

_ADVANCED_SECTION = "advanced"

# Errors that are caused by fields in the `advanced` section.
_ADVANCED_ERRORS = {"invalid_url", "not_compatible", "redirected", "wrong_api_version"}

_URL_SELECTOR = TextSelector(TextSelectorConfig(type=TextSelectorType.URL))
_KEY_SELECTOR = TextSelector(TextSelectorConfig(type=TextSelectorType.PASSWORD))

# The default URLs of Ollama, llama.cpp and LM Studio.
_EXAMPLE_URLS = {
    "ollama": "http://192.168.1.10:11434/v1",
    "llama_cpp": "http://192.168.1.10:8080/v1",
    "lm_studio": "http://192.168.1.10:1234/v1",
}

# The endpoint path after the base URL. Documentation shows the full URL of a request, and people copy it.
_ENDPOINT_PATTERN = re.compile(r"(/chat/completions|(?<=/v1)/(completions|models|responses))$")

# Top-level domains of home networks: from RFC 6762, RFC 8375, ICANN's resolution 2024.07.29.06, and common routers.
_LOCAL_DOMAINS = ("home", "home.arpa", "internal", "lan", "local", "localdomain", "localhost")

# Errors that the user can fix in the account's form, with another key or another value.
ACCOUNT_ERRORS = frozenset({"invalid_auth", "wrong_api_version"})
# Errors that the user can fix by choosing another model.
MODEL_ERRORS = frozenset({"no_such_deployment", "no_such_model", "unsuitable_model"})

# Providers whose API is usually under `/v1`.
_V1_PATH_PROVIDERS = (const.PROVIDER_OPENAI, const.PROVIDER_OPENAI_CHAT)

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
class AccountForm:
    """The form of one kind of account."""

    provider: str
    # The vendor's own URL, or empty.
    default_url: str = ""
    # The title of the account, or empty to use the host name.
    title: str = ""
    # Placeholders of the translations.
    link_placeholders: Mapping[str, str] = field(default_factory=dict)
    requires_key: bool = True
    # Fields that most people leave unchanged.
    advanced: tuple[str, ...] = ()

    def build_schema(
        self, account: Mapping[str, Any], *, key_only: bool, key_exists: bool, typed_key: str = "", error: str = ""
    ) -> probatio.Schema:
        """Return the fields, filled with the account's data. Only a key that was just typed is shown again."""
        key = probatio.Required if self.requires_key and not key_exists else probatio.Optional
        suggested = {"suggested_value": typed_key} if typed_key else None
        fields: dict[Any, Any] = {key(CONF_API_KEY, description=suggested): _KEY_SELECTOR}
        if not key_only:
            address = {} if CONF_URL in self.advanced else self._build_field(CONF_URL, account)
            fields = {**address, **fields, **self._build_advanced_section(account, error)}
        return probatio.Schema(fields)

    def build_account_data(self, user_input: Mapping[str, Any], account: Mapping[str, Any]) -> dict[str, Any]:
        """Return the account's data after the form is submitted.

        Values without a field stay unchanged, and values of emptied fields are removed, except for a required key and
        the vendor's own URL.
        """
        advanced = user_input.get(_ADVANCED_SECTION)
        unchanged = account if advanced is None else {name: account[name] for name in account.keys() - {*self.advanced}}
        flat = {**unchanged, **user_input, **(advanced or {}), const.CONF_PROVIDER: self.provider}
        flat.pop(_ADVANCED_SECTION, None)
        texts = {name: value.strip() if isinstance(value, str) else value for name, value in flat.items()}
        if self.requires_key and not texts.get(CONF_API_KEY):
            texts[CONF_API_KEY] = account.get(CONF_API_KEY)
        if CONF_URL in self.advanced:
            texts[CONF_URL] = texts.get(CONF_URL) or self.default_url
        return {name: value for name, value in texts.items() if value or name == CONF_URL}

    def _build_field(self, name: str, account: Mapping[str, Any]) -> dict[Any, Any]:
        match name:
            case "url":
                suggested = {"suggested_value": account.get(CONF_URL) or self.default_url}
                return {probatio.Required(CONF_URL, description=suggested): _URL_SELECTOR}
            case "format":
                return build_choice(name, const.OpenAIFormat, account.get(name, const.DEFAULT_OPENAI_FORMAT))
            case _:
                return {probatio.Optional(name, description={"suggested_value": account.get(name)}): TextSelector()}

    def _build_advanced_section(self, account: Mapping[str, Any], error: str) -> dict[Any, Any]:
        if not self.advanced:
            return {}
        fields: dict[Any, Any] = {}
        for name in self.advanced:
            fields |= self._build_field(name, account)
        usual = {CONF_URL: self.default_url, const.CONF_FORMAT: const.DEFAULT_OPENAI_FORMAT}
        differs = any(account.get(name, usual.get(name)) != usual.get(name) for name in self.advanced)
        collapsed = not differs and error not in _ADVANCED_ERRORS
        return {probatio.Required(_ADVANCED_SECTION): section(probatio.Schema(fields), {"collapsed": collapsed})}

    def find_error_field(self, error: str, *, key_only: bool) -> str:
        """Return the field or section that shows an error, or `base` for an error that is shown above all fields."""
        if error == "key_missing":
            return CONF_API_KEY
        if key_only:
            return "base"
        if error == "invalid_url" and CONF_URL not in self.advanced:
            return CONF_URL
        return _ADVANCED_SECTION if error in {"invalid_url", "wrong_api_version"} else "base"


ACCOUNT_FORMS = {
    form.provider: form
    for form in (
        AccountForm(
            const.PROVIDER_OPENAI,
            const.OPENAI_URL,
            "OpenAI",
            link_placeholders={"provider": "OpenAI", "key_page": "https://platform.openai.com/api-keys"},
            advanced=(CONF_URL, const.CONF_FORMAT),
        ),
        AccountForm(const.PROVIDER_AZURE, advanced=(const.CONF_FORMAT, const.CONF_API_VERSION)),
        AccountForm(
            const.PROVIDER_GEMINI,
            const.GEMINI_URL,
            "Google Gemini",
            link_placeholders={"provider": "Google", "key_page": "https://aistudio.google.com/app/apikey"},
            advanced=(CONF_URL,),
        ),
        AccountForm(
            const.PROVIDER_ANTHROPIC,
            const.ANTHROPIC_URL,
            "Anthropic",
            link_placeholders={"provider": "Anthropic", "key_page": "https://platform.claude.com/settings/keys"},
            advanced=(CONF_URL,),
        ),
        AccountForm(const.PROVIDER_OPENAI_CHAT, link_placeholders=_EXAMPLE_URLS, requires_key=False),
    )
}


def parse_base_urls(entered: str, *, has_key: bool) -> list[str]:
    """Return the base URLs that the entered text may mean, in the order to try, or an empty list if it is not a URL.

    The path of a request and a query are removed. If the scheme is missing, a host in the home network gets http, and
    any other host https. The latter also gets http, unless that would send a key or a password without encryption.
    """
    address = entered.strip()
    has_secret = has_key or "@" in address
    urls = (_parse_base_url(f"{scheme}{address}") for scheme in _choose_schemes(address, has_secret=has_secret))
    return [url for url in urls if url is not None]


def _choose_schemes(address: str, *, has_secret: bool) -> list[str]:
    """Return the schemes to try for an address: an empty one if it has a scheme, and none for a single word."""
    if "://" in address:
        return [""]
    if not re.search(r"[.:/]", address) or re.match(r"https?[:/]", address, re.IGNORECASE):
        return []
    try:
        is_at_home = _is_local_host(urlsplit(f"//{address}").hostname or "")
    except ValueError:
        return []
    return ["http://"] if is_at_home else ["https://"] if has_secret else ["https://", "http://"]


def _is_local_host(host: str) -> bool:
    try:
        return not ip_address(host).is_global
    except ValueError:
        return "." not in host or host.endswith(tuple(f".{domain}" for domain in _LOCAL_DOMAINS))


def _parse_base_url(url: str) -> str | None:
    try:
        parts = urlsplit(url)
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        # raises an error for host names that only the HTTP client refuses
        httpx2.URL(url)
    except ValueError, httpx2.InvalidURL:
        return None
    path = _ENDPOINT_PATTERN.sub("", parts.path.rstrip("/")).rstrip("/")
    valid = valid and not any(char.isspace() for char in url)
    return urlunsplit((parts.scheme, parts.netloc, path, "", "")) if valid else None


def build_account_title(form: AccountForm, account: Mapping[str, Any]) -> str:
    """Return the title of an account: the vendor, with the host if that is not the vendor's own, or the host alone."""
    url: str = account[CONF_URL]
    host = urlsplit(url).netloc.rpartition("@")[2]
    if not form.title:
        return host
    return form.title if url == form.default_url else f"{form.title} ({host})"


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
    *others, last = urls
    try:
        for url in others:
            with suppress(*providers.CONNECTION_ERRORS):
                return await _async_try_base_url(hass, {**account, CONF_URL: url})
        return await _async_try_base_url(hass, {**account, CONF_URL: last})
    except providers.Redirected as err:
        return RejectedAccount("redirected", err.address)
    except providers.ProviderError as err:
        if isinstance(err, providers.BadRequest) and const.CONF_API_VERSION in account:
            return RejectedAccount("wrong_api_version")
        return RejectedAccount(_find_error_key(_LIST_ERROR_KEYS, err))


async def async_try_model(account: VerifiedAccount, model: str) -> str | None:
    """Send the model a short prompt. Return the key of the form's error, or None for any answer, even a truncated one.

    A model of a server without a key is not tried, because the server may have to load it first.
    """
    if is_local_server(account.data):
        return None
    request = providers.Request(model, _TRIAL_MESSAGES, max_answer_tokens=_MAX_TRIAL_TOKENS)
    try:
        async with asyncio.timeout(_TRIAL_TIMEOUT), aclosing(account.provider.stream(request)) as events:
            async for _ in events:
                pass
    except providers.Incomplete, providers.AnswerRefused, providers.RateLimited:
        return None
    except (providers.ProviderError, TimeoutError) as err:
        key = _find_error_key(_MODEL_ERROR_KEYS, err)
        if key == "no_such_model" and account.data[const.CONF_PROVIDER] == const.PROVIDER_AZURE:
            return "no_such_deployment"
        # older API versions list models, but do not support the request format
        wrong_version = key == "unsuitable_model" and const.CONF_API_VERSION in account.data
        is_new_format = account.data.get(const.CONF_FORMAT) == const.OpenAIFormat.RESPONSES
        return "wrong_api_version" if wrong_version and is_new_format else key
    return None


async def _async_try_base_url(hass: HomeAssistant, account: dict[str, Any]) -> VerifiedAccount:
    """List the models at the base URL, adding `/v1` if a URL without a path needs it.

    The URL with `/v1` is tried first, because some servers list their models at both URLs but answer requests at one.
    """
    if account[const.CONF_PROVIDER] in _V1_PATH_PROVIDERS and not urlsplit(account[CONF_URL]).path:
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


def _find_error_key(errors: Mapping[type[providers.ProviderError], str], error: Exception) -> str:
    if isinstance(error, providers.Unavailable) and error.has_answered:
        return "server_failed"
    return next((key for kind, key in errors.items() if isinstance(error, kind)), "cannot_connect")
