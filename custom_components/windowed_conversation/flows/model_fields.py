"""The fields for an agent's model: a list with a default if the server has one, else a name to type."""

from collections.abc import Mapping, Sequence
from typing import Any

from homeassistant.const import CONF_MODEL
from homeassistant.core import HomeAssistant
from homeassistant.helpers.selector import SelectSelector, SelectSelectorConfig, SelectSelectorMode, TextSelector
import probatio

from ..bridge.account import vendor_of
from ..bridge.models import async_families
from ..const import CONF_FAMILY, CONF_PROVIDER, PROVIDER_AZURE
from ..providers import ListedModel, Vendor, conversation_models, recommended_model


def has_deployments(account: Mapping[str, Any]) -> bool:
    """Return whether the account's models are deployments, which no server lists."""
    return bool(account[CONF_PROVIDER] == PROVIDER_AZURE)


def models_to_choose(account: Mapping[str, Any], listed: Sequence[ListedModel]) -> list[str]:
    """Return the names that a form offers."""
    if has_deployments(account):
        return []
    return conversation_models(vendor_of(account), (model.id for model in listed))


def suggested_model(account: Mapping[str, Any], listed: Sequence[ListedModel]) -> str:
    """Return the name that a form suggests, or an empty one if it offers none."""
    return recommended_model(vendor_of(account), models_to_choose(account, listed)) or ""


async def async_model_fields(
    hass: HomeAssistant, account: Mapping[str, Any], listed: Sequence[ListedModel]
) -> dict[Any, Any]:
    """Return the field for the model, and on Azure one for what the deployment runs.

    With a list, one of its models is the default: otherwise the browser chooses the first.
    """
    if has_deployments(account):
        families = await async_families(hass, Vendor.AZURE)
        return {probatio.Required(CONF_MODEL): TextSelector(), probatio.Optional(CONF_FAMILY): _name_selector(families)}
    names = models_to_choose(account, listed)
    if not names:
        return {probatio.Required(CONF_MODEL): TextSelector()}
    return {probatio.Required(CONF_MODEL, default=suggested_model(account, listed)): _name_selector(names)}


def _name_selector(names: list[str]) -> SelectSelector:
    return SelectSelector(SelectSelectorConfig(options=names, custom_value=True, mode=SelectSelectorMode.DROPDOWN))
