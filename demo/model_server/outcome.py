"""The outcome of a tool call, as a model understands it."""

from dataclasses import dataclass
import json

from .conversation import ToolResult


@dataclass(frozen=True, slots=True)
class ToolOutcome:
    """The outcome of a tool call; `error` is empty if the call succeeded."""

    error: str
    text: str


def parse_outcome(result: ToolResult) -> ToolOutcome:
    """Return the outcome in the result of a call."""
    try:
        data = json.loads(result.text)
    except ValueError:
        return ToolOutcome("", result.text)
    if not isinstance(data, dict):
        return ToolOutcome("", result.text)
    failed = bool(data.get("error"))
    if isinstance(data.get("data"), dict) and data.keys() <= {"data", "error"}:
        data = data["data"]
        failed = failed or bool(data.get("error"))
    if failed:
        return ToolOutcome(str(data.get("error_text") or data.get("error") or "it failed"), "")
    if data.get("response_type") == "error":
        return ToolOutcome(str(data.get("speech") or "it failed"), "")
    text = data.get("result")
    return ToolOutcome("", text if isinstance(text, str) else json.dumps(data))
