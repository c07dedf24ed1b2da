"""The gate: actions that open the house are withheld until the speaker has said yes, or the code.

An action outside the limits of the speaker is refused.

Withheld actions stand in working memory only, so a restart drops them.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
import re
import time

from homeassistant.auth.permissions.const import POLICY_CONTROL
from homeassistant.components.conversation import HOME_ASSISTANT_AGENT, ConversationInput
from homeassistant.core import HomeAssistant
from homeassistant.helpers import llm

from ..bridge.errors import async_get_done_phrase, async_get_spoken_text
from ..bridge.openings import Openings, async_find_loose_openings, async_find_tool_openings
from ..bridge.permissions import Reach
from ..bridge.spoken_code import MASK, find_digits, matches_code
from ..bridge.tools import SafeAPIInstance
from ..const import AskMode
from ..memory.turn.evidence import may_hide
from ..memory.turn.replies import parse_yes_no
from ..memory.turn.speaker import Permission, Speaker, SpeakerSource
from .config import AgentConfig
from .issues import Issue, async_update_issue

# In seconds, how long a yes counts, and how long digits are taken for a code that comes too late.
_REPLY_SECONDS = 60.0
_CODE_SECONDS = 300.0
_PAUSE_SECONDS = 300.0
_MAX_WRONG_CODES = 5

# A text after which the same sentence goes on.
_UNFINISHED_PATTERN = re.compile(r"[\w,:;(-][ \t]*\Z")

_TOOL_NOTE = "Nothing was done. Say exactly what `say` says. If it is a question, a yes is carried out without you."

# Carries out a sentence and returns Home Assistant's answer.
type CarryOut = Callable[[ConversationInput], Awaitable[str]]


@dataclass(slots=True)
class WithheldAction:
    """An action that waits for a yes: the calls of a model or, without any, the sentence itself."""

    sentence: ConversationInput
    limits: frozenset[Permission] = frozenset()
    openings: Openings = ()
    calls: list[tuple[SafeAPIInstance, llm.ToolInput]] = field(default_factory=list)
    # On the monotonic clock.
    asked_at: float = field(default_factory=time.monotonic)
    # Whether the speaker was asked, and has not answered yet.
    is_open: bool = False

    @property
    def expects_reply(self) -> bool:
        """Whether a yes or a code would be in time."""
        return self.is_open and time.monotonic() - self.asked_at <= _REPLY_SECONDS

    def is_asked_of(self, user_input: ConversationInput) -> bool:
        """Return whether an input is from the same satellite or the same user."""
        own, place, user = self.sentence, _find_place(user_input), user_input.context.user_id
        return (place is not None and place == _find_place(own)) or (user is not None and user == own.context.user_id)


@dataclass(slots=True)
class GateState:
    """The withheld actions of an agent, and the number of wrong codes since the last right one."""

    actions: list[WithheldAction] = field(default_factory=list)
    wrong_codes: int = 0
    paused_until: float = 0.0

    def find(self, user_input: ConversationInput) -> WithheldAction | None:
        """Return the newest action whose speaker an input may be of."""
        oldest = time.monotonic() - _CODE_SECONDS
        self.actions = [each for each in self.actions if each.asked_at > oldest]
        return next((each for each in reversed(self.actions) if each.is_asked_of(user_input)), None)


@dataclass(slots=True)
class Gate:
    """The gate in one turn. In `user_input`, a spoken code is masked."""

    hass: HomeAssistant
    agent_id: str
    config: AgentConfig
    state: GateState
    user_input: ConversationInput
    # The limits of the speaker.
    reach: Reach
    # The id of the user who counts as known, if any.
    known_user_id: str | None
    # The action that the speaker was asked about before, if any.
    earlier_action: WithheldAction | None
    # The digits of the spoken code, or an empty text.
    digits: str
    # Whether the input answers that question.
    has_reply: bool = False
    # The action that this turn asks about.
    action: WithheldAction | None = None
    # The names of the intents, or after a yes also of the tools, that were called without a model.
    called: list[str] = field(default_factory=list)

    @property
    def is_off(self) -> bool:
        """Whether nothing is withheld from anybody."""
        return self.config.ask_before_opening is AskMode.NEVER

    def take_reply(self) -> bool:
        """Return whether the input answers the earlier question. Any input closes that question."""
        if self.earlier_action is None:
            return False
        answers = parse_yes_no(self.user_input.text, self.user_input.language) is not None
        was_open, self.earlier_action.is_open = self.earlier_action.expects_reply, False
        self.earlier_action = self.earlier_action if was_open else None
        self.has_reply = bool(self.digits) or (was_open and answers)
        return self.has_reply

    async def async_answer_reply(self, carry_out: CarryOut) -> str:
        """Carry out the action that the speaker has agreed to, and return the answer."""
        if self.earlier_action is None:
            return await self._async_get_text("gate_too_late")
        if not self.reach.limits <= self.earlier_action.limits:
            return await self.async_refuse()
        if (objection := await self._async_find_objection(self.earlier_action)) is not None:
            return objection
        if not (calls := self.earlier_action.calls):
            # Home Assistant's own agent carries out the commands of timers
            return await carry_out(replace(self.earlier_action.sentence, agent_id=HOME_ASSISTANT_AGENT))
        self.called = [*dict.fromkeys([call.tool_name for _, call in calls])]
        results = [await replace(api, withhold=None, on_run=None).async_call_tool(call) for api, call in calls]
        if any(result.error for result in results):
            return await async_get_spoken_text(self.hass, self.user_input.language, "exceptions", "unexpected.message")
        return await async_get_done_phrase(self.hass, self.user_input.language)

    async def _async_find_objection(self, earlier: WithheldAction) -> str | None:
        """Return the answer to a reply that is neither the code nor, without a code, a yes."""
        if not self.digits:
            if not parse_yes_no(self.user_input.text, self.user_input.language):
                return await self._async_get_text("all_right")
            return await self._async_ask_again(earlier, "gate_say_code") if self.config.opening_code else None
        if self._is_paused:
            return await self._async_get_text("gate_paused")
        if not await self.hass.async_add_executor_job(matches_code, self.digits, self.config.opening_code):
            return await self._async_count_wrong_code(earlier)
        self.state.wrong_codes = 0
        self.state.actions.remove(earlier)
        async_update_issue(self.hass, Issue.WRONG_CODES, self.agent_id, None)
        return None

    @property
    def _is_paused(self) -> bool:
        return bool(self.config.opening_code) and time.monotonic() < self.state.paused_until

    async def _async_count_wrong_code(self, earlier: WithheldAction) -> str:
        self.state.wrong_codes += 1
        if self.state.wrong_codes < _MAX_WRONG_CODES:
            return await self._async_ask_again(earlier, "gate_wrong_code")
        self.state.wrong_codes, self.state.paused_until = 0, time.monotonic() + _PAUSE_SECONDS
        async_update_issue(self.hass, Issue.WRONG_CODES, self.agent_id, {"agent": self.config.name})
        return await self._async_get_text("gate_paused")

    async def _async_ask_again(self, earlier: WithheldAction, key: str) -> str:
        self.action = earlier
        return await self._async_get_text(key)

    async def async_withhold(self, openings: Openings, sentence: ConversationInput | None = None) -> str | None:
        """Return the question or the refusal to say instead of acting, or None if the speaker may do this."""
        if not openings or self.is_off:
            return None
        user = await self.hass.auth.async_get_user(self.known_user_id) if self.known_user_id else None
        # a user who may control everything is asked only if everybody is
        is_trusted = user is not None and user.permissions.access_all_entities(POLICY_CONTROL)
        if is_trusted and self.config.ask_before_opening is AskMode.UNKNOWN:
            return None
        if user is None and _find_place(self.user_input) is None:
            return await self._async_get_text("gate_nobody")
        if self._is_paused:
            return await self._async_get_text("gate_paused")
        if self.action is None:
            self.action = WithheldAction(sentence or self.user_input, self.reach.limits)
            others = [each for each in self.state.actions if not each.is_asked_of(self.user_input)]
            self.state.actions = [*others, self.action]
        self.action.openings = tuple(dict.fromkeys((*self.action.openings, *openings)))
        return await self._async_build_question(self.action.openings)

    async def async_withhold_loose(self, conversation_id: str) -> str | None:
        """Return the text to say instead of asking Home Assistant's own agent, or None if that may be asked.

        The agent knows from its conversation what "it" is.
        """
        sentence = replace(self.user_input, conversation_id=conversation_id)
        if self.reach.limits and not await replace(self.reach, user_input=sentence).async_has_loose_intents():
            return await self.async_refuse()
        openings = () if self.is_off else await async_find_loose_openings(self.hass, sentence)
        return await self.async_withhold(openings, sentence)

    async def async_withhold_call(self, api: SafeAPIInstance, call: llm.ToolInput) -> llm.ToolResult | None:
        """Return the result of a call that is not carried out yet, or None if it may be carried out."""
        if not await self.reach.async_has_call(api, call):
            return llm.ToolResult(data={"done": False, "say": await self.async_refuse(), "note": _TOOL_NOTE})
        openings = () if self.is_off else await async_find_tool_openings(api, call, self.user_input)
        if (text := await self.async_withhold(openings)) is None:
            return None
        if self.action is not None and all(
            (each.tool_name, each.tool_args) != (call.tool_name, call.tool_args) for _, each in self.action.calls
        ):
            self.action.calls.append((api, call))
        return llm.ToolResult(data={"done": False, "say": text, "note": _TOOL_NOTE})

    async def async_refuse(self) -> str:
        """Return the answer to an action outside the limits of the speaker."""
        limit = next(each for each in reversed(Permission) if each in self.reach.limits)
        return await self._async_get_text(f"refusal_{limit}")

    async def async_find_unasked_question(self, answer: str) -> str | None:
        """Return the question with which the answer of a model does not end, or None: a yes counts for that only.

        It has to be a sentence of its own, and visible.
        """
        if self.action is None or not self.action.calls:
            return None
        question = await self._async_build_question(self.action.openings)
        before, found, after = answer.rpartition(question)
        is_asked = found and not after.strip() and not _UNFINISHED_PATTERN.search(before)
        return None if is_asked and not may_hide(before) else question

    def expect_reply(self) -> bool:
        """Return whether the turn has asked something. The speaker has heard it now, and may answer."""
        if self.action is not None:
            self.action.is_open, self.action.asked_at = True, time.monotonic()
        return self.action is not None

    async def _async_build_question(self, openings: Openings) -> str:
        kinds, names = {each.kind for each in openings}, [each.name for each in openings]
        kind = kinds.pop() if len(kinds) == 1 else "open"
        if names[1:]:
            both = await self._async_get_text("memory_and")
            names = [both.format(first=", ".join(names[:-1]), last=names[-1])]
        question = (await self._async_get_text(f"gate_{kind}")).format(names=names[0])
        return f"{question} {await self._async_get_text('gate_say_code')}" if self.config.opening_code else question

    async def _async_get_text(self, key: str) -> str:
        return await async_get_spoken_text(self.hass, self.user_input.language, "common", key)


async def async_open_gate(
    hass: HomeAssistant,
    agent_id: str,
    config: AgentConfig,
    state: GateState,
    user_input: ConversationInput,
    *,
    speaker: Speaker,
) -> Gate:
    """Return the gate for the turn of an input."""
    known_user_id = speaker.person if speaker.source is SpeakerSource.LOGIN or speaker.is_trusted else None
    # who is neither known, such as a user who was removed, nor at a satellite cannot be asked, and so cannot answer
    can_answer = known_user_id is not None or _find_place(user_input) is not None
    earlier, digits = state.find(user_input) if state.actions and can_answer else None, ""
    if earlier is not None and config.opening_code:
        text, language, is_expected = user_input.text, user_input.language, earlier.expects_reply
        digits = await hass.async_add_executor_job(find_digits, text, language, is_expected)
        user_input = replace(user_input, text=MASK) if digits else user_input
    reach = Reach(hass, user_input, speaker.limits)
    return Gate(hass, agent_id, config, state, user_input, reach, known_user_id, earlier, digits)


def _find_place(user_input: ConversationInput) -> str | None:
    return user_input.satellite_id or user_input.device_id
