"""Fields that several forms share: choices, switches, numbers, the name and the model of an agent.

Home Assistant shows a field's error as the translation of its key, beside the field and without a new form. A new form
would begin at its top, with the error out of sight. So the errors of numbers are keys whose texts name the limits.
"""

from collections.abc import Iterable, Mapping, Sequence
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
import probatio

from ..bridge.account import async_families, vendor_of
from ..const import (
    CONF_FAMILY,
    CONF_PROVIDER,
    DOMAIN,
    PROVIDER_ANTHROPIC,
    PROVIDER_AZURE,
    PROVIDER_GEMINI,
    PROVIDER_NONE,
    PROVIDER_OPENAI,
)
from ..providers import ListedModel, Vendor, conversation_models, recommended_model

# The marker and the selector of a field.
type Field = dict[Any, Any]

_LEAST_TOKENS = 100
_MOST_TOKENS = 2_000_000

# The names that Home Assistant's own integrations use.
_VENDORS = {
    PROVIDER_OPENAI: "OpenAI",
    PROVIDER_AZURE: "Azure OpenAI",
    PROVIDER_GEMINI: "Gemini",
    PROVIDER_ANTHROPIC: "Claude",
    PROVIDER_NONE: "Local",
}
# In characters: of a model's name in an agent's. Names of files can be long.
_LONGEST_NAME = 60


class OutOfRangeError(probatio.Invalid):
    """A number is too small, too large, or not a number. The message is the key of the translation."""


class NumberField(NumberSelector):
    """The selector of a number in a range."""

    def __init__(self, name: str, config: NumberSelectorConfig) -> None:
        """Store the name of the field for the error."""
        super().__init__(config)
        self.name = name

    @override
    def __call__(self, data: Any) -> float:
        value: float = probatio.Coerce(float)(data)
        # false for NaN, too
        if self.config["min"] <= value <= self.config["max"]:
            return value
        raise OutOfRangeError(f"{self.name}_out_of_range")

    @property
    def limits(self) -> dict[str, str]:
        """The placeholders of the error."""
        least, most = self.config["min"], self.config["max"]
        return {f"{self.name}_least": f"{least:,.0f}", f"{self.name}_most": f"{most:,.0f}"}


def limits_of(schema: probatio.Schema) -> Mapping[str, str]:
    """Return the placeholders of the errors of a form's numbers."""
    limits: dict[str, str] = {}
    for field in schema.schema.values():
        if isinstance(field, section):
            limits |= limits_of(field.schema)
        elif isinstance(field, NumberField):
            limits |= field.limits
    return limits


def number(
    name: str,
    least: int,
    most: int,
    unit: str | None = None,
    *,
    step: float = 1,
    default: Any = probatio.UNDEFINED,
    required: bool = True,
) -> Field:
    """Return a field for a typed number. Without a default, it may be empty."""
    config = NumberSelectorConfig(min=least, max=most, step=step, mode=NumberSelectorMode.BOX)
    if unit:
        config["unit_of_measurement"] = unit
    marker = probatio.Required if required and default is not probatio.UNDEFINED else probatio.Optional
    return {marker(name, default=default): NumberField(name, config)}


def tokens(name: str, default: Any = probatio.UNDEFINED) -> Field:
    """Return a field for a number of tokens. Without a default, it may be empty."""
    return number(name, _LEAST_TOKENS, _MOST_TOKENS, "tokens", default=default)


def choice(name: str, options: Iterable[str], default: Any = probatio.UNDEFINED) -> Field:
    """Return a required field with a few choices, labelled by the selector of this name."""
    selector = SelectSelector(SelectSelectorConfig(options=list(options), translation_key=name))
    return {probatio.Required(name, default=default): selector}


def switch(name: str, *, default: bool) -> Field:
    """Return a field that is on or off."""
    return {probatio.Required(name, default=default): BooleanSelector()}


def dropdown(options: list[str], *, multiple: bool = False) -> SelectSelector:
    """Return the selector of names from a list, or others."""
    mode = SelectSelectorMode.DROPDOWN
    return SelectSelector(SelectSelectorConfig(options=options, multiple=multiple, custom_value=True, mode=mode))


def has_deployments(account: Mapping[str, Any]) -> bool:
    """Return whether the account's models are deployments, which no server lists."""
    return bool(account[CONF_PROVIDER] == PROVIDER_AZURE)


def models_to_choose(account: Mapping[str, Any], models: Sequence[ListedModel]) -> list[str]:
    """Return the names that a form offers."""
    if has_deployments(account):
        return []
    return conversation_models(vendor_of(account), (model.id for model in models))


def suggested_model(account: Mapping[str, Any], models: Sequence[ListedModel]) -> str:
    """Return the name that a form suggests, or an empty one if it offers none."""
    return recommended_model(vendor_of(account), models_to_choose(account, models)) or ""


async def async_model_fields(hass: HomeAssistant, account: Mapping[str, Any], models: Sequence[ListedModel]) -> Field:
    """Return the field for the model, and on Azure one for the model of the deployment.

    With a list, one of its models is the default: otherwise the browser chooses the first.
    """
    if has_deployments(account):
        families = await async_families(hass, Vendor.AZURE)
        return {probatio.Required(CONF_MODEL): TextSelector(), probatio.Optional(CONF_FAMILY): dropdown(families)}
    names = models_to_choose(account, models)
    if not names:
        return {probatio.Required(CONF_MODEL): TextSelector()}
    return {probatio.Required(CONF_MODEL, default=suggested_model(account, models)): dropdown(names)}


def agent_name(hass: HomeAssistant, account: Mapping[str, Any], model: str) -> str:
    """Return a name for a new agent: its vendor's, or its model's on a compatible server; empty without either."""
    vendor = _VENDORS.get(account[CONF_PROVIDER])
    name = f"{vendor} conversation" if vendor else _short(model)
    entries = hass.config_entries.async_entries(DOMAIN)
    taken = {subentry.title for entry in entries for subentry in entry.subentries.values()}
    taken |= {state.name for state in hass.states.async_all(Platform.CONVERSATION)}
    return name and _unused(name, taken)


def name_or_suggestion(
    hass: HomeAssistant, account: Mapping[str, Any], entered: str, suggested: str, model: str
) -> str:
    """Return the name that was entered. One that was left as suggested, or empty, follows from the chosen model."""
    name = entered.strip()
    return name if name not in ("", suggested) else agent_name(hass, account, model)


def account_name(hass: HomeAssistant, title: str) -> str:
    """Return the title of a new account, with a number if the title is taken."""
    return _unused(title, (entry.title for entry in hass.config_entries.async_entries(DOMAIN)))


def _unused(name: str, taken: Iterable[str]) -> str:
    folded = {each.casefold() for each in taken}
    names = chain([name], (f"{name} {number}" for number in count(2)))
    return next(each for each in names if each.casefold() not in folded)


def _short(model: str) -> str:
    """Return a model's name without its registry or folder, its tag, and the ending of a file: `llama3.2`."""
    own = re.split(r"[/\\]", model)[-1].partition(":")[0].removesuffix(".gguf")
    return (own.strip() or model)[:_LONGEST_NAME]
