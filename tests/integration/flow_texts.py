"""A check that a flow step has its texts in `translations/en.json`; `test_repository.py` checks their style."""

from collections.abc import Iterator
import json
from pathlib import Path
from typing import Any

from homeassistant.components.repairs import RepairsFlow
from homeassistant.core import DOMAIN as HOMEASSISTANT_DOMAIN
from homeassistant.data_entry_flow import FlowResultType, section

import custom_components.windowed_conversation
from custom_components.windowed_conversation.agents.issues import FIXABLE_ISSUES
from custom_components.windowed_conversation.const import DOMAIN

_ENGLISH_FILE = Path(custom_components.windowed_conversation.__path__[0]) / "translations" / "en.json"
_TEXTS = json.loads(_ENGLISH_FILE.read_text(encoding="utf-8"))


def missing_texts(result: dict[str, Any], flow: object) -> list[str]:
    """Return the translation keys that a flow step needs and whose text is missing or has an unknown placeholder."""
    texts = dict(_flat(_texts_of(result["handler"], flow)))
    placeholders = result.get("description_placeholders") or {}
    return [key for key in _needed(result, texts) if not _can_render(key, texts.get(key), placeholders)]


def _texts_of(handler: str | tuple[str, str], flow: object) -> dict[str, Any]:
    if isinstance(flow, RepairsFlow):
        (issue,) = [each for each in FIXABLE_ISSUES if flow.issue_id.startswith(f"{each}_")]
        return _TEXTS["issues"][issue]["fix_flow"]
    if isinstance(handler, tuple):
        return _TEXTS["config_subentries"][handler[1]]
    return _TEXTS["config"] if handler == DOMAIN else _TEXTS["options"]


def _flat(texts: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    for key, value in texts.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _can_render(key: str, text: str | None, placeholders: dict[str, str]) -> bool:
    try:
        # only a description may be empty
        return text is not None and bool(text.format(**placeholders) or key.endswith(".description"))
    except KeyError:
        return False


def _needed(result: dict[str, Any], texts: dict[str, str]) -> Iterator[str]:
    match result["type"]:
        case FlowResultType.MENU:
            yield from (f"step.{result['step_id']}.menu_options.{option}" for option in result["menu_options"])
        case FlowResultType.FORM:
            yield f"step.{result['step_id']}.title"
            yield from (key for key in (f"step.{result['step_id']}.description",) if key in texts)
            yield from (f"error.{error}" for error in (result["errors"] or {}).values())
            fields = [*_fields(result["data_schema"].schema, f"step.{result['step_id']}")]
            yield from fields
            # `test_repository.py` checks which fields have one
            descriptions = (key.replace(".data.", ".data_description.") for key in fields)
            yield from (key for key in descriptions if ".data_description." in key and key in texts)
        case FlowResultType.ABORT if result.get("translation_domain") != HOMEASSISTANT_DOMAIN:
            yield f"abort.{result['reason']}"


def _fields(schema: dict[Any, Any], prefix: str) -> Iterator[str]:
    for field, value in schema.items():
        if isinstance(value, section):
            yield f"{prefix}.sections.{field}.name"
            yield from _fields(value.schema.schema, f"{prefix}.sections.{field}")
        else:
            yield f"{prefix}.data.{field}"
