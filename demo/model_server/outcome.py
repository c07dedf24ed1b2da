"""The outcome of a tool call, as a model understands it."""

from dataclasses import dataclass
import json

from .conversation import Result


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a tool call; `error` is empty if the call succeeded."""

    error: str
    text: str


def outcome(result: Result) -> Outcome:
    """Return the outcome in the result of a call."""
    try:
        data = json.loads(result.text)
    except ValueError:
        return Outcome("", result.text)
    if not isinstance(data, dict):
        return Outcome("", result.text)
    failed = bool(data.get("error"))
    if isinstance(data.get("data"), dict) and data.keys() <= {"data", "error"}:
        data = data["data"]
        failed = failed or bool(data.get("error"))
    if failed:
        return Outcome(str(data.get("error_text") or data.get("error") or "it failed"), "")
    if data.get("response_type") == "error":
        return Outcome(str(data.get("speech") or "it failed"), "")
    text = data.get("result")
    return Outcome("", text if isinstance(text, str) else json.dumps(data))
