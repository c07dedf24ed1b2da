"""AI tasks in Home Assistant's form: the schema and the check of their data, and their files."""

from collections.abc import Iterable
from copy import deepcopy
from functools import partial
from pathlib import Path
import re
from typing import Any

from homeassistant.components.conversation import Attachment as TaskFile
from homeassistant.core import HomeAssistant
from homeassistant.helpers import llm
from homeassistant.helpers.selector import ActionSelector, ChooseSelector, SelectSelector, TriggerSelector
import probatio

from ..providers import AnswerSchema
from ..turn.summary import DataDemand
from ..window import Attachment
from .pictures import MAX_FILE_BYTES, PDF_TYPE, UnreadableFile, async_prepare_attachment

# The names that OpenAI accepts: https://platform.openai.com/docs/api-reference/responses/create
_INVALID_NAME_CHAR_PATTERN = re.compile(r"[^a-zA-Z0-9_-]")
_MAX_NAME_CHARS = 64
_DEFAULT_NAME = "data"
_MAX_PROBLEMS = 10
# Home Assistant's schema takes their values for text, which its check refuses.
_FREE_SELECTORS = (ActionSelector, ChooseSelector, TriggerSelector)


def build_data_demand(name: str, structure: probatio.Schema) -> DataDemand:
    """Return the demand for data of this structure, for the task with this name."""
    schema = probatio.to_openapi(structure, custom_serializer=_serialize, openapi_version="3.1.0")
    name = _INVALID_NAME_CHAR_PATTERN.sub("_", name)[:_MAX_NAME_CHARS] or _DEFAULT_NAME
    return DataDemand(AnswerSchema(name, schema), partial(_find_problem, structure))


def _serialize(selector: Any) -> Any:
    if isinstance(selector, _FREE_SELECTORS):
        return {}
    schema = llm.selector_serializer(selector)
    if isinstance(selector, SelectSelector) and selector.config.get("custom_value"):
        # Home Assistant's schema allows the options only, its check any text
        for each in (schema, schema.get("items", {})):
            if "enum" in each:
                del each["enum"]
    return schema


def _find_problem(structure: probatio.Schema, data: Any) -> str | None:
    """Return the problems of the data as text for the model, or None. The check changes data, so it gets a copy."""
    try:
        structure(deepcopy(data))
    except probatio.MultipleInvalid as err:
        return "; ".join(map(str, err.errors[:_MAX_PROBLEMS]))
    except (probatio.Invalid, TypeError, ValueError, AttributeError) as err:
        return str(err)
    return None


async def async_read_files(
    hass: HomeAssistant, files: Iterable[TaskFile], *, images: bool, pdf: bool
) -> tuple[Attachment, ...]:
    """Return the files of a task. `images`, `pdf`: whether the model reads these types. Raises `UnreadableFile`."""
    attachments, size = list[Attachment](), 0
    for file in files:
        data = await hass.async_add_executor_job(_read_file, file.path)
        attachment = await async_prepare_attachment(hass, data, file.path.name)
        if not (pdf if attachment.mime_type == PDF_TYPE else images):
            raise UnreadableFile("file_not_readable")
        if (size := size + len(attachment.data)) > MAX_FILE_BYTES:
            raise UnreadableFile("file_too_large")
        attachments.append(attachment)
    return tuple(attachments)


def _read_file(path: Path) -> bytes:
    """Return the content of a file. If it is too large, return one byte more than the limit."""
    try:
        with path.open("rb") as file:
            return file.read(MAX_FILE_BYTES + 1)
    except OSError as err:
        raise UnreadableFile("file_not_readable") from err
