"""What models cost and how much they read, from the prices that `genai-prices` brings along; nothing is downloaded.

Importing this takes a second and the first lookup another quarter: both belong into an executor.
"""

from decimal import Decimal

from genai_prices import Usage as PricedUsage, calc_price
from genai_prices.types import PriceCalculation

from .events import Usage
from .profiles import Vendor


def cost_of(vendor: Vendor, model: str, usage: Usage) -> Decimal | None:
    """Return what a request has cost in US dollars, None where the model's price is not known."""
    priced = PricedUsage(
        input_tokens=usage.input,
        cache_read_tokens=usage.cached,
        cache_write_tokens=usage.cache_written,
        output_tokens=usage.output,
    )
    found = _looked_up(vendor, model, priced)
    return None if found is None else found.total_price


def context_tokens_of(vendor: Vendor, model: str) -> int | None:
    """Return how many tokens a model reads, None where it is not known."""
    found = _looked_up(vendor, model, PricedUsage(input_tokens=0, output_tokens=0))
    return None if found is None else found.model.context_window


def _looked_up(vendor: Vendor, model: str, usage: PricedUsage) -> PriceCalculation | None:
    try:
        return calc_price(usage, model.removeprefix("models/"), provider_id=vendor)
    except LookupError:
        return None
