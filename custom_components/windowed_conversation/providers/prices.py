"""The prices and context sizes of models, from the bundled data of `genai-prices`. Nothing is downloaded.

Importing this module takes a second and the first lookup another quarter of a second, so do both in an executor.
"""

from collections.abc import Mapping
from decimal import Decimal
import re

from genai_prices import Usage as PricedUsage, calc_price
from genai_prices.data_snapshot import get_snapshot
from genai_prices.types import PriceCalculation

from .events import Usage
from .models import UNKNOWN_MODEL, Vendor, filter_conversation_models, find_profile

# Model names that contain these are patterns.
_PATTERN = re.compile(r":|\.ft")

_FLEXIBLE_TIER = {"service_tier": "flex"}


def calculate_cost(vendor: Vendor, model: str, usage: Usage, *, is_flexible: bool = False) -> Decimal | None:
    """Return the cost of a request in US dollars, or None if the price is unknown or the usage is inconsistent.

    `is_flexible`: whether the request is billed at the provider's flexible tier.
    """
    priced = PricedUsage(
        input_tokens=usage.input,
        cache_read_tokens=usage.cached,
        cache_write_tokens=usage.cache_written,
        output_tokens=usage.output,
        web_searches=usage.searches,
    )
    found = _look_up_price(vendor, model, priced, _FLEXIBLE_TIER if is_flexible else None)
    return None if found is None else found.total_price


def find_context_tokens(vendor: Vendor, model: str) -> int | None:
    """Return the context size of a model in tokens, or None if it is unknown."""
    found = _look_up_price(vendor, model, PricedUsage(input_tokens=0, output_tokens=0))
    return None if found is None else found.model.context_window


def list_priced_models(vendor: Vendor) -> list[str]:
    """Return the names of a vendor's conversation models that have both a profile and a price."""
    names = {model.id for each in get_snapshot().providers if each.id == vendor.maker for model in each.models}
    profiled = (name for name in names if find_profile(vendor, name) is not UNKNOWN_MODEL and not _PATTERN.search(name))
    return sorted(filter_conversation_models(vendor, profiled))


def _look_up_price(
    vendor: Vendor, model: str, usage: PricedUsage, context: Mapping[str, str] | None = None
) -> PriceCalculation | None:
    try:
        return calc_price(usage, model.removeprefix("models/"), provider_id=vendor, price_context=context)
    except LookupError, ValueError:
        return None
