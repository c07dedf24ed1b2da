"""The openings of a sentence, an intent or a tool call, found by Home Assistant's own matching of targets.

An opening unlocks a lock, opens an entrance, disarms an alarm, or runs a tool that declares that it destroys something
or acts outside the home. Scripts, scenes and sentence triggers of users have none, except for a trigger's sentence that
a model lets a timer say.
"""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal

from homeassistant.components.conversation import DOMAIN as CONVERSATION, ConversationInput
from homeassistant.components.conversation.agent_manager import async_get_agent
from homeassistant.const import ATTR_DEVICE_CLASS, ATTR_ENTITY_ID
from homeassistant.core import HomeAssistant, State
from homeassistant.helpers import area_registry as ar, device_registry as dr, entity_registry as er, intent, llm
import probatio

from ..const import DOMAIN
from .tools import read_annotations, unwrap_tool

if TYPE_CHECKING:
    from hassil.recognize import RecognizeResult

_ENTRANCES = frozenset({"door", "garage", "gate"})
# The services by which an intent opens an entity of a domain.
_OPENING_SERVICES = {
    "lock": ("unlock", "open", "turn_off", "toggle"),
    "cover": ("open_cover", "set_cover_position", "turn_on", "toggle"),
    "alarm_control_panel": ("alarm_disarm", "turn_off", "toggle"),
}
_COMMAND_SLOT = "conversation_command"
# The name by which an intent means every entity.
_EVERY_NAME = "all"
# The annotations of a tool that declares nothing.
_UNDECLARED = llm.ToolAnnotations()

# The kinds of openings. Targets have one by domain; a tool runs.
type OpeningKind = Literal["unlock", "open", "disarm", "run"]
_KIND_BY_DOMAIN: dict[str, OpeningKind] = {"lock": "unlock", "cover": "open", "alarm_control_panel": "disarm"}


@dataclass(frozen=True, slots=True)
class Opening:
    """A target that would be opened, or a tool that would run, by its name."""

    kind: OpeningKind
    name: str


type Openings = tuple[Opening, ...]


def may_open(hass: HomeAssistant, result: RecognizeResult) -> bool:
    """Return whether a recognized sentence may open anything. This is fast, and most sentences cannot."""
    if _COMMAND_SLOT in result.entities:
        return True
    if _find_handler(hass, result.intent.name) is None:
        return False
    domain = result.entities.get("domain")
    states = hass.states.async_all([each for each in _OPENING_SERVICES if domain is None or each in str(domain.value)])
    name = result.entities.get("name")
    if name is None or name.value == _EVERY_NAME:
        return bool(states)
    return any(_has_name(hass, state, str(name.value)) for state in states)


def _has_name(hass: HomeAssistant, state: State, name: str) -> bool:
    """Return whether Home Assistant matches an entity by this name, alias or id."""
    names = intent.async_get_entity_aliases(hass, er.async_get(hass).async_get(state.entity_id), state=state)
    return name.strip().casefold() in (state.entity_id, *(each.strip().casefold() for each in names))


async def async_find_openings(hass: HomeAssistant, result: RecognizeResult, user_input: ConversationInput) -> Openings:
    """Return the openings of a recognized sentence."""
    slots = {each.name: each.value for each in result.entities_list}
    return await _find_by_intent(hass, result.intent.name, slots, user_input)


async def async_find_loose_openings(hass: HomeAssistant, user_input: ConversationInput) -> Openings:
    """Return the openings of a sentence for Home Assistant's own agent, which also matches loosely."""
    agent: Any = async_get_agent(hass)
    result = await agent.async_recognize_intent(user_input)
    if result is not None and not result.unmatched_entities:
        return await async_find_openings(hass, result, user_input)
    # Private to Home Assistant. If it has changed, the sentence fails instead of opening something.
    gazetteer = agent._gazetteer  # noqa: SLF001
    if not gazetteer.supports(user_input.language):
        return ()
    area_id = _find_area_id(hass, user_input)
    area = ar.async_get(hass).async_get_area(area_id) if area_id else None
    _, found = await gazetteer.async_interpret(user_input.text, user_input.conversation_id or "", area)
    frames = found.frames or () if found.accepted else ()
    openings = [await _find_by_intent(hass, frame.intent, dict(frame.slots), user_input) for frame in frames]
    return tuple(chain.from_iterable(openings))


async def async_find_tool_openings(
    api: llm.APIInstance, call: llm.ToolInput, user_input: ConversationInput
) -> Openings:
    """Return the openings of a call of one of the API's tools. Our own tools ask the user themselves."""
    tool = next((each for each in api.tools if each.name == call.tool_name), None)
    if tool is None:
        return ()
    origin, hass = unwrap_tool(tool), api.api.hass
    if not isinstance(origin, llm.IntentTool):
        return (Opening("run", tool.title or tool.name),) if _is_declared_risky(tool, api.tools) else ()
    near = llm.async_get_match_preferences(hass, api.llm_context)
    places = {"preferred_area_id": near.area_id, "preferred_floor_id": near.floor_id}
    slots = call.tool_args | {slot: place for slot, place in places.items() if place}
    return await _find_by_intent(hass, origin.intent_type, slots, user_input)


def _is_declared_risky(tool: llm.Tool, tools: Iterable[llm.Tool]) -> bool:
    """Return whether a tool says that it destroys something or acts outside the home.

    A tool that declares nothing has the same annotations, so this is believed only if another tool of its integration
    declares something else.
    """
    hints, origin = read_annotations(tool), tool.integration
    if origin == DOMAIN or hints.read_only or not (hints.destructive or hints.open_world):
        return False
    return any(read_annotations(each) != _UNDECLARED for each in tools if each.integration == origin)


async def _find_by_intent(
    hass: HomeAssistant, name: str, values: dict[str, Any], user_input: ConversationInput
) -> Openings:
    values = {"preferred_area_id": _find_area_id(hass, user_input), **values}
    if name == intent.INTENT_START_TIMER and (command := values.get(_COMMAND_SLOT)):
        # Home Assistant's own agent carries it out later
        return await async_find_loose_openings(hass, replace(user_input, text=str(command)))
    if (handler := _find_handler(hass, name)) is None:
        return ()
    found: list[Opening] = []

    async def note(call: intent.Intent, match: intent.MatchTargetsResult, *_more: Any) -> intent.IntentResponse:
        for state in match.states:
            _, service = handler.get_domain_and_service(call, state)
            if _opens(hass, state, service, call.slots):
                found.append(Opening(_KIND_BY_DOMAIN[state.domain], state.name))
        return call.create_response()

    # the handler itself looks for its targets, and gets no further; a call that it refuses opens nothing
    probe = copy(handler)
    vars(probe)["async_handle_states"] = note
    slots = {slot: {"value": value} for slot, value in values.items() if not intent.is_blank_slot_value(value)}
    context, language = user_input.context, user_input.language
    call = intent.Intent(hass, CONVERSATION, name, slots, user_input.text, context, language, CONVERSATION)
    with suppress(intent.IntentError, probatio.Invalid):
        await probe.async_handle(call)
    return tuple(dict.fromkeys(found))


def _find_handler(hass: HomeAssistant, name: str) -> intent.DynamicServiceIntentHandler | None:
    """Return the handler of an intent that calls services of its targets, or None for another intent."""
    plain = intent.DynamicServiceIntentHandler
    handlers = [each for each in intent.async_get(hass) if isinstance(each, plain) and each.intent_type == name]
    # one with a way of its own might act when it only has to look
    return next((each for each in handlers if type(each).async_handle is plain.async_handle), None)


def _opens(hass: HomeAssistant, state: State, service: str, slots: Mapping[str, Any]) -> bool:
    """Return whether a service that an intent calls opens an entity."""
    if service not in _OPENING_SERVICES.get(state.domain, ()):
        return False
    position = state.attributes.get("current_position") or 0
    if service == "set_cover_position" and slots["position"]["value"] <= position:
        return False
    return state.domain != "cover" or _is_entrance(hass, state)


def _is_entrance(hass: HomeAssistant, state: State) -> bool:
    """Return whether a cover, or one in a group of covers, is an entrance."""
    members = map(hass.states.get, state.attributes.get(ATTR_ENTITY_ID) or ())
    covers = (state, *filter(None, members))
    return any(cover.attributes.get(ATTR_DEVICE_CLASS) in _ENTRANCES for cover in covers)


def _find_area_id(hass: HomeAssistant, user_input: ConversationInput) -> str | None:
    """Return the area of an input's satellite or device, as Home Assistant's agent finds it."""
    satellite = er.async_get(hass).async_get(user_input.satellite_id or "")
    if satellite is not None and satellite.area_id is not None:
        return satellite.area_id
    device_id = satellite.device_id if satellite is not None else user_input.device_id
    device = dr.async_get(hass).async_get(device_id or "")
    return None if device is None else dr.async_get_effective_area_id(hass, device)
