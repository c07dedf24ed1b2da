"""What is known about an agent's model: the profile of its family, with the limits that somebody names.

The provider's own list comes first, then the bundled table of prices, then nobody: what the user enters is the
agent's business.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

from homeassistant.core import HomeAssistant
from homeassistant.helpers.importlib import async_import_module

from ..providers.events import ListedModel, Usage
from ..providers.profile import Profile
from ..providers.profiles import Vendor, profile_of

_PRICES = f"{__package__.rpartition('.')[0]}.providers.prices"


async def async_profile(hass: HomeAssistant, vendor: Vendor | None, family: str, listed: ListedModel | None) -> Profile:
    """Return what is known about a model; `family` is its name, or on Azure what the user says that it is."""
    profile = profile_of(vendor, family)
    context = listed.context_tokens if listed else None
    if context is None and vendor is not None:
        prices = await _async_prices(hass)
        context = await hass.async_add_executor_job(prices.context_tokens_of, vendor, family)
    return replace(profile, context_tokens=context, output_tokens=listed.output_tokens if listed else None)


def listed_model(models: Sequence[ListedModel], name: str) -> ListedModel | None:
    """Return what a provider's list says about a model."""
    return next((model for model in models if model.id == name.removeprefix("models/")), None)


async def async_cost(hass: HomeAssistant, vendor: Vendor, usage: Mapping[str, Usage]) -> Decimal | None:
    """Return what was used, by the families of the models, in US dollars, None where one of the prices is not known."""
    prices = await _async_prices(hass)

    def cost() -> Decimal | None:
        costs = [prices.cost_of(vendor, family, used) for family, used in usage.items()]
        return None if None in costs else sum(costs, Decimal())

    return await hass.async_add_executor_job(cost)


async def _async_prices(hass: HomeAssistant) -> Any:
    return await async_import_module(hass, _PRICES)
