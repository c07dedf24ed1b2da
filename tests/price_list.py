"""The price of a request by the price list, calculated from the usage that the scripted server has recorded."""

from typing import Any

from genai_prices import Usage, calc_price


def price(vendor: str, model: str, usage: dict[str, Any]) -> float:
    """Return the price of a request in US dollars. `usage` comes from its record in the server's log."""
    used = Usage(
        input_tokens=usage["prompt"],
        cache_read_tokens=usage["cached"],
        cache_write_tokens=usage["written"],
        output_tokens=usage["completion"],
    )
    return float(calc_price(used, model, provider_id=vendor).total_price)
