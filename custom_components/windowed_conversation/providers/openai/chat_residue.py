"""Residue of Chat Completions: the fields beside text and calls that a server wants back. Pure.

Reasoning, under the name in which it came; `reasoning_details`; and the `extra_content` of each call, which has its
thought signature. DeepSeek, OpenRouter and Google's endpoint refuse a call of theirs that comes back without it:
https://api-docs.deepseek.com/guides/thinking_mode, https://openrouter.ai/docs/use-cases/reasoning-tokens,
https://ai.google.dev/gemini-api/docs/thought-signatures
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
import json
from typing import Any

from ...window import EstimatedCounter, Message, Role
from ..encoder import residue_of
from ..events import Request
from ..json_values import objects, read_repaired_json

# Where servers put a model's reasoning: DeepSeek, llama.cpp, LM Studio and vLLM; Ollama and OpenRouter.
_REASONING_FIELDS = ("reasoning_content", "reasoning")
_DETAILS = "reasoning_details"

# Characters of JSON. More than that is not worth its place in every later request.
_LONGEST = 64 * 1024

# The members of a detail that OpenRouter streams in fragments; all others are complete.
_FRAGMENTS = frozenset({"text", "summary"})

_ESTIMATE = EstimatedCounter()

type _Object = Mapping[str, Any]

# Reasoning that DeepSeek accepts for a message without any; it refuses an empty text:
# https://github.com/NousResearch/hermes-agent/pull/18263
_FILLER: _Object = {"reasoning_content": " "}


class Echo(StrEnum):
    """The way in which a server expects the fields back that it wrote beside its messages.

    WRITTEN: as it wrote it. FILLED: with reasoning in every message, as DeepSeek, also where another model or nobody
    wrote it. NOTHING: not at all, as Groq for some models: https://github.com/karthink/gptel/issues/774
    """

    WRITTEN = "written"
    FILLED = "filled"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class ChatResidue:
    """The fields that go back to the server that wrote a message: of the message, and of each call by the call's id."""

    fields: _Object = field(default_factory=dict)
    calls: _Object = field(default_factory=dict)


def own_residue(message: Message | None, provider: str, model: str) -> ChatResidue | None:
    """Return the residue of this provider's model on a message; None if another wrote it or it cannot be read."""
    value = residue_of(message, provider, model)
    if not isinstance(value, dict) or not value.keys() <= {"fields", "calls"}:
        return None
    fields, calls = value.get("fields", {}), value.get("calls", {})
    if not isinstance(fields, dict) or not isinstance(calls, dict):
        return None
    known = fields.keys() <= {*_REASONING_FIELDS, _DETAILS}
    return ChatResidue(fields, calls) if known else None


def echo_fields(residue: ChatResidue | None, echo: Echo) -> _Object:
    """Return the fields to send with an assistant message."""
    if echo is Echo.NOTHING:
        return {}
    fields = residue.fields if residue else {}
    return fields or (_FILLER if echo is Echo.FILLED else {})


def other_echoes(request: Request, provider: str) -> list[Echo]:
    """Return the ways to send the request's residue that differ from `Echo.WRITTEN`.

    Reasoning is filled in only if this model or another has left any residue: most models do not reason.
    """
    answers = [message for message in request.messages if message.role is Role.ASSISTANT]
    own = [own_residue(message, provider, request.model) for message in answers]
    with_fields = [residue is not None and bool(residue.fields) for residue in own]
    of_others = any(message.native and residue is None for message, residue in zip(answers, own, strict=True))
    may_fill = not all(with_fields) and (any(with_fields) or of_others)
    return [*([Echo.FILLED] if may_fill else []), *([Echo.NOTHING] if any(with_fields) else [])]


class ResidueReader:
    """Gathers the residue of one answer while it arrives. Too long a residue is dropped as a whole."""

    def __init__(self) -> None:
        self._texts: dict[str, list[str]] = {}
        self._details: list[dict[str, Any]] = []
        self._newest: dict[str, dict[str, Any]] = {}
        self._length = 0

    def on_delta(self, delta: Any) -> str:
        """Add the fields of a delta beside text and calls. Return its reasoning as text."""
        if details := delta.get(_DETAILS):
            for detail in objects(details):
                self._on_detail(detail)
        for name in _REASONING_FIELDS:
            thought = delta.get(name)
            if thought and isinstance(thought, str):
                if self._grow(len(thought)):
                    self._texts.setdefault(name, []).append(thought)
                return thought
        return ""

    def has_room_for(self, value: Any) -> bool:
        """Count a value. Return whether the residue is short enough with it."""
        return self._grow(_length(value))

    def value(self, calls: _Object) -> dict[str, Any]:
        """Return the residue as JSON with whole characters, empty if there is none or too much.

        `calls` has the `extra_content` of each call for which there was room, by our id of the call.
        """
        if self._length > _LONGEST:
            return {}
        fields: dict[str, Any] = {name: "".join(texts) for name, texts in self._texts.items()}
        if self._details:
            fields[_DETAILS] = self._details
        found = {name: each for name, each in {"fields": fields, "calls": calls}.items() if each}
        try:
            value: dict[str, Any] = read_repaired_json(json.dumps(found))
        except RecursionError:
            return {}
        return value

    def _grow(self, characters: int) -> bool:
        self._length += characters
        return self._length <= _LONGEST

    def _on_detail(self, detail: dict[str, Any]) -> None:
        """Add a detail, or join it to the one that it continues."""
        index = str(detail.get("index"))
        newest = self._newest.get(index)
        if newest and _continues(newest, detail):
            texts = {name: detail[name] for name in _FRAGMENTS if detail.get(name)}
            others = {name: each for name, each in detail.items() if name not in _FRAGMENTS and each is not None}
            others = {name: each for name, each in others.items() if each != newest.get(name)}
            if self._grow(sum(map(len, texts.values())) + (_length(others) if others else 0)):
                newest.update(others, **{name: (newest.get(name) or "") + text for name, text in texts.items()})
        elif self.has_room_for(detail):
            self._details.append(detail)
            self._newest[index] = detail


def residue_tokens(residue: _Object) -> int:
    """Return the estimated cost of residue. Details repeat the reasoning, so only one of both counts."""
    fields, calls = residue.get("fields", {}), residue.get("calls", {})
    texts = [fields[name] for name in _REASONING_FIELDS if name in fields]
    texts = texts or [json.dumps(each, ensure_ascii=False) for each in (fields,) if each]
    return sum(map(_ESTIMATE.count, (*texts, *(json.dumps(each, ensure_ascii=False) for each in calls.values()))))


def _continues(newest: _Object, detail: _Object) -> bool:
    """Return whether a detail is the next fragment of the newest with its index.

    Details of different types may have one index: https://github.com/OpenRouterTeam/ai-sdk-provider/issues/519. A
    signed or encrypted detail is complete.
    """
    if newest.get("type") != detail.get("type") or newest.get("signature") or "data" in detail:
        return False
    return all(isinstance(each.get(name) or "", str) for each in (newest, detail) for name in _FRAGMENTS)


def _length(value: Any) -> int:
    try:
        return len(json.dumps(value))
    except RecursionError:
        return _LONGEST + 1
