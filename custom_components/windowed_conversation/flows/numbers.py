"""Number fields whose errors name the limits in the reader's language.

Home Assistant shows a field's error as the translation of its key, beside the field and without a new form. A new form
would begin at its top, with the error out of sight.
"""

from collections.abc import Mapping
from typing import Any, override

from homeassistant.data_entry_flow import section
from homeassistant.helpers.selector import NumberSelector, NumberSelectorConfig, NumberSelectorMode
import probatio

_LEAST_TOKENS = 100
_MOST_TOKENS = 2_000_000


class OutOfRangeError(probatio.Invalid):
    """A number is too small, too large, or not a number. The message is the key of the translation."""


class NumberField(NumberSelector):
    """A field for a number in a range."""

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


def number_field(name: str, least: int, most: int, unit: str | None = None, step: float = 1) -> NumberField:
    """Return a field for a typed number."""
    config = NumberSelectorConfig(min=least, max=most, step=step, mode=NumberSelectorMode.BOX)
    if unit:
        config["unit_of_measurement"] = unit
    return NumberField(name, config)


def tokens_field(name: str) -> NumberField:
    """Return a field for a number of tokens."""
    return number_field(name, _LEAST_TOKENS, _MOST_TOKENS, "tokens")


def limits_of(schema: probatio.Schema) -> Mapping[str, str]:
    """Return the placeholders of the errors of a form's numbers."""
    limits: dict[str, str] = {}
    for field in schema.schema.values():
        if isinstance(field, section):
            limits |= limits_of(field.schema)
        elif isinstance(field, NumberField):
            limits |= field.limits
    return limits
