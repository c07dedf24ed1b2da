"""The model of an agent: the profile of its family, with the limits that a list names.

The provider's own list comes first, then the bundled table of prices.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any, NamedTuple

from homeassistant.core import HomeAssistant
from homeassistant.helpers.importlib import async_import_module

from ..providers import ListedModel, ModelProfile, Usage, Vendor, profile_of

_PRICES = f"{__package__.rpartition('.')[0]}.providers.prices"


class ModelUsage(NamedTuple):
    """The usage of one request to a model; `family` is the model's name, or on Azure that of the deployment's model."""

    vendor: Vendor
    family: str
    usage: Usage


async def async_model_profile(
    hass: HomeAssistant, vendor: Vendor | None, family: str, name: str, models: Sequence[ListedModel]
) -> ModelProfile:
    """Return the profile of a model, with the limits that a provider's list has for its name.

    `family` is the name, too, or on Azure the model that the user says the deployment runs.
    """
    profile = profile_of(vendor, family)
    listed = next((model for model in models if model.id == name.removeprefix("models/")), None)
    context = listed.context_tokens if listed else None
    if context is None and vendor is not None:
        prices = await _async_prices(hass)
        context = await hass.async_add_executor_job(prices.context_tokens_of, vendor, family)
    return replace(profile, context_tokens=context, output_tokens=listed.output_tokens if listed else None)


async def async_cost(hass: HomeAssistant, usages: Collection[ModelUsage]) -> Decimal | None:
    """Return the cost of requests in US dollars, or None if one of the prices is unknown.

    Calculated for each request, because some models have higher prices for long requests.
    """
    prices = await _async_prices(hass)

    def cost() -> Decimal | None:
        costs = [prices.cost_of(use.vendor, use.family, use.usage) for use in usages]
        return None if None in costs else sum(costs, Decimal())

    return await hass.async_add_executor_job(cost)


async def async_families(hass: HomeAssistant, vendor: Vendor) -> list[str]:
    """Return the names of a vendor's known models, for a deployment, whose own name does not name its model."""
    prices = await _async_prices(hass)
    names: list[str] = await hass.async_add_executor_job(prices.priced_model_names, vendor)
    return names


async def _async_prices(hass: HomeAssistant) -> Any:
    return await async_import_module(hass, _PRICES)
