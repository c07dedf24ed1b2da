"""One long conversation in a real window that contains everything a request can contain, answered by every format.

Ids, the clock, and the scripted model's signatures are constant, so that the requests are, too.
"""

from base64 import b64decode
from collections.abc import Mapping
import json
from typing import Any

from custom_components.windowed_conversation.providers.events import ToolSchema
from custom_components.windowed_conversation.providers.gemini.encoding import Signatures, SignedText
from custom_components.windowed_conversation.window import (
    Attachment,
    EstimatedCounter,
    Message,
    NativeData,
    ToolCall,
    Window,
    WindowPolicy,
)
from demo.model_server.residue import seal_content

CLAUDE, GEMINI, GPT, LLAMA = "claude-haiku-4-5", "gemini-3-pro", "gpt-5.5", "llama-4"

LOOK, OFF, ON = "homeassistant__GetLiveContext", "intent__HassTurnOff", "intent__HassTurnOn"
_NAMED: Mapping[str, Any] = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "domain": {"type": "array", "items": {"type": "string"}}},
    "required": ["name"],
}
TOOLS = (
    ToolSchema(LOOK, "States of the devices at home", {"type": "object", "properties": {"name": {"type": "string"}}}),
    ToolSchema(OFF, "Turns off a device", _NAMED),
    ToolSchema(ON, "Turns on a device", _NAMED),
)
MODELS = (CLAUDE, GEMINI, GPT, LLAMA)

PREFIX = "[CONTEXT: time: Monday 2026-11-23 08:00; area: Attic]\n\n"
SYSTEM = "You are a voice assistant for Home Assistant.\nAnswer in one sentence."
SUMMARY = "The user's name is Anna; she told you about the garden, the cellar, the roof and the shed."
PIXEL_PNG = b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
)

# The first room is removed by a trim, together with its messages; the turn that mentions the second word is aborted.
TRIMMED, ABORTED = "garden", "greenhouse"

# Thoughts with signatures of the scripted model for `CLAUDE`. The signatures differ, and they never expire.
_THOUGHTS = (
    ("Two lamps at once.", "Uzl00Qf9Q1aaj8FW2lFlDBMbD2tnpi/BdF8VsMAO/AE="),
    ("I look at the picture, then at the home.", "K8OCswY9Qzels7P44bzSqhhE/Urw1trs2Shag1WTzgg="),
)


def conversation(format_name: str) -> Window:
    """Return a window with an open exchange, in which a format's model has called two tools and got their results."""
    window = Window(
        "conversation", WindowPolicy(400, summarize=True), EstimatedCounter(), clock=lambda: 1_795_420_800.0
    )
    window.set_system_prompt(SYSTEM)
    _talk_and_summarize(window)
    window.set_policy(WindowPolicy(8000, summarize=True))
    _act_locally(window)
    for at, name in enumerate(("chat", "anthropic", "gemini", "responses")):
        _switch(window, name, f"call_{at}_{name}")
        window.add(Message.assistant("Done, both are on."))
        window.close()
    _abort(window)
    _show_picture(window)
    _switch(window, format_name, "call_now")
    return window


def _talk_and_summarize(window: Window) -> None:
    for room in (TRIMMED, "cellar", "roof", "shed"):
        window.open(
            f"{PREFIX}My name is Anna, and I want to tell you about the {room}. " + f"The {room} is nice. " * 20
        )
        window.add(Message.assistant(f"How lovely, Anna! I should like to see the {room} \N{SUNFLOWER}."))
        window.close()
    assert window.pending_summary
    window.insert_summary(window.pending_summary, SUMMARY)


def _act_locally(window: Window) -> None:
    call = ToolCall("local_0", "HassTurnOn", {"name": "Küche", "domain": ["light"]})
    messages = (
        Message.user("schalte das Licht in der Küche ein"),
        Message.assistant(tool_calls=(call,)),
        Message.tool(call.id, call.name, '{"response_type":"action_done"}'),
        Message.assistant("Eingeschaltet"),
    )
    window.add_exchange(messages, tags={"route:local"})


def _switch(window: Window, name: str, call_id: str) -> None:
    """Add an exchange in which a format's model reasons, writes text, and calls two tools, one of which fails."""
    window.open(f"{PREFIX}switch on the kitchen light and the bedroom light")
    calls = tuple(ToolCall(f"{call_id}_{at}", ON, {"name": room}) for at, room in enumerate(("kitchen", "bedroom")))
    text = "One moment."
    window.add(Message.assistant(text, tool_calls=calls, native=make_native(name, text, calls)))
    window.add(Message.tool(calls[0].id, ON, json.dumps({"response_type": "action_done", "said": "word " * 60})))
    window.add(Message.tool(calls[1].id, ON, json.dumps({"error": "MatchFailedError", "error_text": "no such light"})))


def _abort(window: Window) -> None:
    window.open(f"{PREFIX}what is on in the {ABORTED}?")
    window.add(Message.assistant(tool_calls=(ToolCall("aborted", LOOK, {"name": ABORTED}),)))
    window.abort()


def _show_picture(window: Window) -> None:
    picture = Attachment("image/png", PIXEL_PNG, "door.png")
    paper = Attachment("application/pdf", b"%PDF-1.7", "notice.pdf")
    call = ToolCall("call_picture", LOOK, {})
    messages = (
        Message.user(f"{PREFIX}who is at the door?", attachments=(picture, paper)),
        Message.assistant(tool_calls=(call,)),
        Message.tool(call.id, LOOK, json.dumps({"result": "- names: Door\n  state: 'open'"})),
        Message.assistant("Nobody, and the door is open."),
    )
    window.add_exchange(messages, tags={"route:model"})


def make_native(name: str, text: str, calls: tuple[ToolCall, ...]) -> NativeData | None:
    """Return the residue of a format's model for an answer with reasoning, text and calls."""
    closed = not calls[0].id.startswith("call_now")
    match name:
        case "anthropic":
            thought, signature = _THOUGHTS[closed]
            thinking = {"type": "thinking", "thinking": thought, "signature": signature}
            return NativeData("anthropic", CLAUDE, [thinking, {"type": "text"}, *({"type": "tool_use"} for _ in calls)])
        case "gemini":
            first, spoken = (
                b64decode(seal_content(GEMINI, f"{calls[0].id} {part}".encode())) for part in ("call", "text")
            )
            ids = {call.id: f"native_{call.id}" for call in calls}
            residue = Signatures(ids, {calls[0].id: first}, (SignedText(len(text), 0, spoken),))
            return NativeData("gemini", GEMINI, residue.as_json())
        case "responses":
            return NativeData("openai_responses", GPT, _items(text, calls))
        case _:
            return None


def _items(text: str, calls: tuple[ToolCall, ...]) -> list[Any]:
    item_id = f"rs_{calls[0].id.encode().hex():0<32.32}"
    return [
        {
            "type": "reasoning",
            "id": item_id,
            "encrypted_content": seal_content(GPT, item_id.encode()),
            "summary": [{"type": "summary_text", "text": "Two lamps at once."}],
        },
        {"type": "message", "start": 0, "end": len(text), "phase": "commentary"},
        *({"type": "function_call", "call_id": call.id} for call in calls),
    ]
