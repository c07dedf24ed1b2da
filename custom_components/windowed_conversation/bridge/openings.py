"""The openings of a sentence, an intent or a tool call, found by Home Assistant's own matching of targets.

An opening unlocks a lock, opens an entrance, disarms an alarm, or runs a tool that declares that it destroys something
or acts outside the home. Scripts, scenes and sentence triggers of users have none, except for a trigger's sentence that
a model lets a timer say.
"""

from collections.abc import Iterable, Iterator, Mapping
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
# Groups may contain groups, down to this depth.
MAX_DEPTH = 5
COMMAND_SLOT = "conversation_command"
# The name by which an intent means every entity.
EVERY_NAME = "all"
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
# An entity, the service that an intent would call on it, and the slots of the intent.
type Target = tuple[State, str, Mapping[str, Any]]


def may_open(hass: HomeAssistant, result: RecognizeResult) -> bool:
    """Return whether a recognized sentence may open anything. This is fast, and most sentences cannot."""
    if COMMAND_SLOT in result.entities:
        return True
    if _find_handler(hass, result.intent.name) is None:
        return False
    domain = result.entities.get("domain")
    domains = [each for each in _OPENING_SERVICES if domain is None or each in str(domain.value)]
    states = [each for each in hass.states.async_all(domains) if guards_house(hass, each)]
    name = result.entities.get("name")
    if name is None or name.value == EVERY_NAME:
        return bool(states)
    registry, wanted = er.async_get(hass), str(name.value).strip().casefold()
    for state in states:
        # Home Assistant matches an entity by its name, aliases and id
        aliases = intent.async_get_entity_aliases(hass, registry.async_get(state.entity_id), state=state)
        if wanted in (state.entity_id, *[each.strip().casefold() for each in aliases]):
            return True
    return False


def read_intent(result: RecognizeResult) -> tuple[str, dict[str, Any]]:
    """Return the name and the slots of the intent of a recognized sentence."""
    return result.intent.name, {each.name: each.value for each in result.entities_list}


async def async_find_loose_openings(hass: HomeAssistant, user_input: ConversationInput) -> Openings:
    """Return the openings of a sentence for Home Assistant's own agent, which also matches loosely."""
    found = await async_find_loose_intents(hass, user_input)
    openings = [await async_find_openings(hass, name, slots, user_input) for name, slots in found]
    return tuple(chain.from_iterable(openings))


async def async_find_loose_intents(
    hass: HomeAssistant, user_input: ConversationInput
) -> list[tuple[str, dict[str, Any]]]:
    """Return the names and the slots of the intents that Home Assistant's own agent finds in a sentence."""
    agent: Any = async_get_agent(hass)
    result = await agent.async_recognize_intent(user_input)
    if result is not None and not result.unmatched_entities:
        return [read_intent(result)]
    # Private to Home Assistant. If it has changed, the sentence fails instead of opening something.
    gazetteer = agent._gazetteer  # noqa: SLF001
    if not gazetteer.supports(user_input.language):
        return []
    area_id = find_area_id(hass, user_input)
    area = ar.async_get(hass).async_get_area(area_id) if area_id else None
    _, found = await gazetteer.async_interpret(user_input.text, user_input.conversation_id or "", area)
    frames = found.frames or () if found.accepted else ()
    return [(frame.intent, dict(frame.slots)) for frame in frames]


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
    if command := call.tool_args.get(COMMAND_SLOT):
        # only a person may say the sentence of a trigger, which may do anything
        agent: Any = async_get_agent(hass)
        if await agent.async_recognize_sentence_trigger(replace(user_input, text=str(command))) is not None:
            return (Opening("run", str(command)),)
    return await async_find_openings(hass, origin.intent_type, get_call_slots(api, call), user_input)


def get_call_slots(api: llm.APIInstance, call: llm.ToolInput) -> dict[str, Any]:
    """Return the slots of the intent that a call of a tool carries out."""
    near = llm.async_get_match_preferences(api.api.hass, api.llm_context)
    places = {"preferred_area_id": near.area_id, "preferred_floor_id": near.floor_id}
    return call.tool_args | {slot: place for slot, place in places.items() if place}


def _is_declared_risky(tool: llm.Tool, tools: Iterable[llm.Tool]) -> bool:
    """Return whether a tool says that it destroys something or acts outside the home.

    A tool that declares nothing has the same annotations, so this is believed only if another tool of its integration
    declares something else.
    """
    hints, origin = read_annotations(tool), tool.integration
    if origin == DOMAIN or hints.read_only or not (hints.destructive or hints.open_world):
        return False
    return any(read_annotations(each) != _UNDECLARED for each in tools if each.integration == origin)


async def async_find_openings(
    hass: HomeAssistant, name: str, values: dict[str, Any], user_input: ConversationInput
) -> Openings:
    """Return the openings of an intent with these slots."""
    if name == intent.INTENT_START_TIMER and (command := values.get(COMMAND_SLOT)):
        # Home Assistant's own agent carries it out later
        return await async_find_loose_openings(hass, replace(user_input, text=str(command)))
    targets = await async_find_targets(hass, name, values, user_input) or ()
    opened = [each[0] for each in targets if _opens(hass, *each)]
    return tuple(dict.fromkeys(Opening(_KIND_BY_DOMAIN[state.domain], state.name) for state in opened))


async def async_find_targets(
    hass: HomeAssistant, name: str, values: Mapping[str, Any], user_input: ConversationInput
) -> list[Target] | None:
    """Return the targets of an intent with these slots, or None if its handler acts in a way of its own."""
    if (handler := _find_handler(hass, name)) is None:
        return None
    values = {"preferred_area_id": find_area_id(hass, user_input), **values}
    found: list[Target] = []

    async def note(call: intent.Intent, match: intent.MatchTargetsResult, *_more: Any) -> intent.IntentResponse:
        for state in match.states:
            _, service = handler.get_domain_and_service(call, state)
            found.append((state, service, call.slots))
        return call.create_response()

    # the handler itself looks for its targets, and gets no further; a call that it refuses opens nothing
    probe = copy(handler)
    vars(probe)["async_handle_states"] = note
    slots = {slot: {"value": value} for slot, value in values.items() if not intent.is_blank_slot_value(value)}
    context, language = user_input.context, user_input.language
    call = intent.Intent(hass, CONVERSATION, name, slots, user_input.text, context, language, CONVERSATION)
    with suppress(intent.IntentError, probatio.Invalid):
        await probe.async_handle(call)
    return found


def _find_handler(hass: HomeAssistant, name: str) -> intent.DynamicServiceIntentHandler | None:
    """Return the handler of an intent that calls services of its targets, or None for another intent."""
    plain, handler = intent.DynamicServiceIntentHandler, hass.data.get(intent.DATA_KEY, {}).get(name)
    # a handler that works in its own way might act, although it should only find its targets
    return handler if isinstance(handler, plain) and type(handler).async_handle is plain.async_handle else None


def _opens(hass: HomeAssistant, state: State, service: str, slots: Mapping[str, Any]) -> bool:
    """Return whether a service that an intent calls opens an entity."""
    if service not in _OPENING_SERVICES.get(state.domain, ()):
        return False
    if service == "set_cover_position":
        # the position of a group is the mean of its members
        positions = [cover.attributes.get("current_position") or 0 for cover in _list_covers(hass, state)]
        if slots["position"]["value"] <= min(positions):
            return False
    return guards_house(hass, state)


def guards_house(hass: HomeAssistant, state: State) -> bool:
    """Return whether an entity is a lock, an alarm, or a cover that is an entrance or has one in its group."""
    if state.domain != "cover":
        return state.domain in _KIND_BY_DOMAIN
    return any(cover.attributes.get(ATTR_DEVICE_CLASS) in _ENTRANCES for cover in _list_covers(hass, state))


def _list_covers(hass: HomeAssistant, state: State, depth: int = MAX_DEPTH) -> Iterator[State]:
    """Yield a cover and the members of its group, also those of groups in it."""
    yield state
    for member in filter(None, map(hass.states.get, state.attributes.get(ATTR_ENTITY_ID) or ())) if depth else ():
        yield from _list_covers(hass, member, depth - 1)


def find_area_id(hass: HomeAssistant, user_input: ConversationInput) -> str | None:
    """Return the area of an input's satellite or device, as Home Assistant's agent finds it."""
    satellite = er.async_get(hass).async_get(user_input.satellite_id or "")
    if satellite is not None and satellite.area_id is not None:
        return satellite.area_id
    device_id = satellite.device_id if satellite is not None else user_input.device_id
    device = dr.async_get(hass).async_get(device_id or "")
    return None if device is None else dr.async_get_effective_area_id(hass, device)
