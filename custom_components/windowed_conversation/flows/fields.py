"""Form fields and sections that several forms share, and the fields for the name and the model of an agent.

Home Assistant shows the error of a field beside the field and does not load the form again. A reloaded form would begin
at its top, with the error out of sight. So the error of a number is a complete sentence that names the limits.
"""

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, count
import re
from typing import Any, override

from homeassistant.const import CONF_MODEL, Platform
from homeassistant.core import HomeAssistant
from homeassistant.data_entry_flow import section
from homeassistant.helpers.selector import (
    BooleanSelector,
    NumberSelector,
    NumberSelectorConfig,
    NumberSelectorMode,
    SelectSelector,
    SelectSelectorConfig,
    SelectSelectorMode,
    TextSelector,
)
from homeassistant.helpers.translation import async_get_translations
import probatio

from ..bridge.account import async_list_families, get_vendor
from ..bridge.errors import async_get_spoken_text, format_count
from ..const import (
    CONF_DEPLOYMENT,
    CONF_FAMILY,
    CONF_PROVIDER,
    DOMAIN,
    PROVIDER_ANTHROPIC,
    PROVIDER_AZURE,
    PROVIDER_GEMINI,
    PROVIDER_NONE,
    PROVIDER_OPENAI,
)
from ..providers import ListedModel, Provider, Vendor, filter_conversation_models, recommend_model

# Form fields: a mapping from the schema marker to the selector.
type FormFields = dict[Any, Any]

_MIN_TOKENS = 100
_MAX_TOKENS = 2_000_000

# In seconds. A form waits no longer for a server's description of a model.
_IMAGES_TIMEOUT = 5.0

# The vendor names that core's own integrations use for their agents.
_VENDOR_NAMES = {
    PROVIDER_OPENAI: "OpenAI",
    PROVIDER_AZURE: "Azure OpenAI",
    PROVIDER_GEMINI: "Gemini",
    PROVIDER_ANTHROPIC: "Claude",
    PROVIDER_NONE: "Local",
}
# The suffix of the names of AI tasks, as in core's integrations.
TASK_SUFFIX = " AI Task"
# In characters: the longest model name within an agent's name. File names of models can be long.
_MAX_MODEL_NAME_CHARS = 60


class NumberFieldSelector(NumberSelector):
    """Selector of a number within a range. `error` is the sentence to show for any other value."""

    def __init__(self, config: NumberSelectorConfig) -> None:
        super().__init__(config)
        self.error = ""

    @override
    def __call__(self, data: Any) -> float:
        value: float = probatio.Coerce(float)(data)
        # this is also False for NaN
        if self.config["min"] <= value <= self.config["max"]:
            return value
        raise probatio.Invalid(self.error)


async def async_set_limit_errors(hass: HomeAssistant, schema: probatio.Schema, category: str) -> None:
    """Set the errors of all number fields of a form, in Home Assistant's language.

    `category` is the category of translations that has the labels of the fields.
    """
    language = hass.config.language
    texts = await async_get_translations(hass, language, category, [DOMAIN])
    labels = {key.rpartition(".")[2]: text for key, text in texts.items() if key.split(".")[-2] == "data"}
    template = await async_get_spoken_text(hass, language, "options", "error.out_of_range")
    for name, selector in _iter_number_fields(schema):
        least, most = selector.config["min"], selector.config["max"]
        selector.error = template.format(
            field=labels.get(name, name), least=format_count(least, language), most=format_count(most, language)
        )


def _iter_number_fields(schema: probatio.Schema) -> Iterator[tuple[str, NumberFieldSelector]]:
    for name, field in schema.schema.items():
        if isinstance(field, section):
            yield from _iter_number_fields(field.schema)
        elif isinstance(field, NumberFieldSelector):
            yield str(name), field


class FormSection(section):
    """A section that shows the errors of its fields. Home Assistant would show them at the top of the form."""

    def __init__(self, fields: FormFields, *, collapsed: bool) -> None:
        super().__init__(probatio.Schema(fields), {"collapsed": collapsed})

    @override
    def __call__(self, value: Any) -> Any:
        try:
            return super().__call__(value)
        except probatio.MultipleInvalid as err:
            raise probatio.Invalid(err.errors[0].error_message) from err


def nest_in_sections(data: Mapping[str, Any], sections: Mapping[str, FormFields]) -> dict[str, Any]:
    """Return stored data, which has no sections, nested as a form with these sections expects it."""
    inside = {name: {str(field): data[field] for field in fields if field in data} for name, fields in sections.items()}
    fields = {str(field) for section_fields in sections.values() for field in section_fields}
    return {**{name: value for name, value in data.items() if name not in fields}, **inside}


def flatten_sections(entered: Mapping[str, Any], sections: Iterable[str]) -> dict[str, Any]:
    """Return the input of a form with these sections as stored data, which has no sections."""
    outside = {name: value for name, value in entered.items() if name not in sections}
    return outside | {field: value for name in sections for field, value in entered.get(name, {}).items()}


def number_field(
    name: str,
    least: int,
    most: int,
    unit: str | None = None,
    *,
    step: float = 1,
    default: Any = probatio.UNDEFINED,
    required: bool = True,
) -> FormFields:
    """Return a field for a number that the user types. Without a default, the field may be empty."""
    config = NumberSelectorConfig(min=least, max=most, step=step, mode=NumberSelectorMode.BOX)
    if unit:
        config["unit_of_measurement"] = unit
    marker = probatio.Required if required and default is not probatio.UNDEFINED else probatio.Optional
    return {marker(name, default=default): NumberFieldSelector(config)}


def token_field(name: str, default: Any = probatio.UNDEFINED) -> FormFields:
    """Return a field for a number of tokens. Without a default, the field may be empty."""
    return number_field(name, _MIN_TOKENS, _MAX_TOKENS, "tokens", default=default)


def build_choice(name: str, options: Iterable[str], default: Any = probatio.UNDEFINED) -> FormFields:
    """Return a required field with a few choices, labelled by the translations of the selector with this name."""
    selector = SelectSelector(SelectSelectorConfig(options=list(options), translation_key=name))
    return {probatio.Required(name, default=default): selector}


def switch_field(name: str, *, default: bool) -> FormFields:
    """Return a field that is on or off."""
    return {probatio.Required(name, default=default): BooleanSelector()}


def dropdown(options: list[str]) -> SelectSelector:
    """Return a dropdown of names that also accepts other names."""
    mode = SelectSelectorMode.DROPDOWN
    return SelectSelector(SelectSelectorConfig(options=options, custom_value=True, mode=mode))


def has_deployments(account: Mapping[str, Any]) -> bool:
    """Return whether the account's models are Azure deployments, which no server lists."""
    return bool(account[CONF_PROVIDER] == PROVIDER_AZURE)


def get_model_field(account: Mapping[str, Any]) -> str:
    """Return the name of the field for an agent's model."""
    return CONF_DEPLOYMENT if has_deployments(account) else CONF_MODEL


def pop_model_names(account: Mapping[str, Any], entered: dict[str, Any]) -> dict[str, str]:
    """Remove the fields of `async_build_model_fields` from the input of a form. Return the names to store."""
    names = {CONF_MODEL: entered.pop(get_model_field(account)), CONF_FAMILY: entered.pop(CONF_FAMILY, "")}
    return {name: text.strip() for name, text in names.items() if text.strip()}


def list_models(account: Mapping[str, Any], models: Sequence[ListedModel]) -> list[str]:
    """Return the names of the models that a form offers."""
    if has_deployments(account):
        return []
    return filter_conversation_models(get_vendor(account), (model.id for model in models))


def suggest_model(account: Mapping[str, Any], models: Sequence[ListedModel]) -> str:
    """Return the model name that a form suggests, or an empty string if the form offers none."""
    return recommend_model(get_vendor(account), list_models(account, models)) or ""


async def async_reads_images(account: Mapping[str, Any], provider: Provider, model: str) -> bool | None:
    """Return whether a compatible server says that the model reads pictures, or None if it does not say."""
    if get_vendor(account) is not None or not model:
        return None
    try:
        async with asyncio.timeout(_IMAGES_TIMEOUT):
            return await provider.fetch_reads_images(model)
    except TimeoutError:
        return None


async def async_build_model_fields(
    hass: HomeAssistant, account: Mapping[str, Any], models: Sequence[ListedModel]
) -> FormFields:
    """Return the field for the model. On Azure, also return one for the model that the deployment runs.

    If models are listed, one of them is the default: otherwise the browser would select the first.
    """
    if has_deployments(account):
        families = await async_list_families(hass, Vendor.AZURE)
        return {probatio.Required(CONF_DEPLOYMENT): TextSelector(), probatio.Optional(CONF_FAMILY): dropdown(families)}
    names = list_models(account, models)
    if not names:
        return {probatio.Required(CONF_MODEL): TextSelector()}
    return {probatio.Required(CONF_MODEL, default=suggest_model(account, models)): dropdown(names)}


def suggest_agent_name(
    hass: HomeAssistant, account: Mapping[str, Any], model: str, *, suffix: str = " conversation"
) -> str:
    """Return an unused name for a new agent, from its vendor or its model. Return an empty string without either.

    On a compatible server, only the name of an AI task ends with its `suffix`.
    """
    vendor = _VENDOR_NAMES.get(account[CONF_PROVIDER])
    name = vendor or _shorten_model_name(model)
    if name and (vendor or suffix == TASK_SUFFIX):
        name += suffix
    entries = hass.config_entries.async_entries(DOMAIN)
    taken = {subentry.title for entry in entries for subentry in entry.subentries.values()}
    taken |= {state.name for state in hass.states.async_all(Platform.CONVERSATION)}
    return name and _make_unique(name, taken)


def choose_agent_name(entered: str, suggested: str, default: str) -> str:
    """Return the entered name, or the default if it is empty or was only suggested."""
    name = entered.strip()
    return name if name not in ("", suggested) else default


def make_unique_title(hass: HomeAssistant, title: str) -> str:
    """Return the title of a new account, with a number appended if the title is already in use."""
    return _make_unique(title, (entry.title for entry in hass.config_entries.async_entries(DOMAIN)))


def _make_unique(name: str, taken: Iterable[str]) -> str:
    folded = {each.casefold() for each in taken}
    names = chain([name], (f"{name} {number}" for number in count(2)))
    return next(each for each in names if each.casefold() not in folded)


def _shorten_model_name(model: str) -> str:
    """Return a short model name, such as `llama3.2`: without registry or folder, tag, and file extension."""
    own = re.split(r"[/\\]", model)[-1].partition(":")[0].removesuffix(".gguf")
    return (own.strip() or model)[:_MAX_MODEL_NAME_CHARS]
