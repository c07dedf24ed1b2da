"""A turn in Home Assistant as one object, which is the host of the turn, and the question that it builds."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
import logging
import time
from typing import Any
from uuid import uuid7

from homeassistant.components.conversation import HOME_ASSISTANT_AGENT, ChatLog, ConversationInput
from homeassistant.core import HomeAssistant
from homeassistant.exceptions import TemplateError
from homeassistant.helpers import area_registry as ar, device_registry as dr, entity_registry as er, llm
from homeassistant.helpers.template import Template
from homeassistant.util import dt as dt_util

from ..bridge.chat_log import ChatLogReply
from ..bridge.errors import async_get_done_phrase, async_get_spoken_text
from ..bridge.permissions import Reach
from ..bridge.pictures import async_read_input_files, create_look_tools
from ..bridge.tool_search import defer_tools
from ..bridge.tools import SafeAPIInstance, async_get_tools
from ..const import DOMAIN, RecordLevel
from ..home.bridge.states import async_get_home_states
from ..home.bridge.tools import create_home_tools
from ..home.core.home import MIN_STATES_TOKENS, STATES_HINT
from ..memory.bridge.answers import ForgetCallback, MemoryAnswerer
from ..memory.bridge.tools import async_get_home_languages, make_tools
from ..memory.core import Memory
from ..memory.turn.dialog import MemoryDialog
from ..memory.turn.forgetting import remove_forget_exchange
from ..memory.turn.recall import PromptFacts, append_prompt_facts
from ..memory.turn.remember_requests import MemoryReply
from ..memory.turn.speaker import Speaker, is_order
from ..providers import count_tools_tokens
from ..record import TurnRecord
from ..reminders.bridge.answers import ReminderAnswerer
from ..reminders.bridge.tools import make_reminder_tools
from ..turn.attempts import ToolRun
from ..turn.context import ContextPlacement, InputStamp
from ..turn.errors import ConversationBusy, PromptRenderingFailed
from ..turn.limits import RequestWeight, calculate_max_live_tokens, calculate_overview_limit, weigh_request
from ..turn.model import BilledRequest, Model, Question
from ..turn.names import clean_name
from ..turn.routing import Route, RouteDecision, RouteReason, RoutingMode, Situation
from ..turn.state import LocalMessagesBuilder, Turn
from ..window import (
    Attachment,
    EstimatedCounter,
    TextKind,
    TurnPlace,
    Window,
    WindowBusy,
    WindowStats,
    count_text_tokens,
)
from .agent import (
    Agent,
    EntityAgent,
    async_find_agent,
    async_find_fallback_agents,
    run_each,
)
from .forgetting import async_run_deletion
from .gate import Gate
from .live_context import TurnContext, calculate_live_limit
from .local_intents import LocalAnswerer
from .match_checker import REASONS_FOR_DEFAULT_AGENT
from .reminders import async_get_reminders
from .store import async_get_store
from .turn_questions import TurnQuestionAnswerer

_LOGGER = logging.getLogger(__name__)


@dataclass(slots=True)
class ConversationTurn:
    """One turn, from its place among those of its window to its result. It is the `TurnHost` of its `state`."""

    agent: Agent
    entity_id: str
    window_key: str
    user_input: ConversationInput
    speaker: Speaker
    gate: Gate
    # How long it may wait for its window, on the clock of the event loop.
    wait_ends_at: float = 0.0
    place: TurnPlace = field(init=False)
    reply: ChatLogReply = field(init=False)
    chat_log: ChatLog = field(init=False)
    # Earlier turns may use it until a model is asked.
    window: Window = field(init=False)
    # The id of the turn in the record, which sorts by time.
    id: str = field(init=False)
    # The id of the turn, or None if it is not recorded.
    record_id: str | None = field(init=False)
    # In seconds since the epoch.
    started_at: float = field(default_factory=time.time)
    dialog: MemoryDialog = field(init=False)
    reminders: ReminderAnswerer = field(init=False)
    # Returns the reply in the chat log of the conversation, if another turn may use that at first.
    open_log: Callable[[], ChatLogReply] | None = None
    # The statistics of the window at the start.
    stats_before: WindowStats = field(init=False)
    # The statistics of the window after the turn.
    stats_after: WindowStats = field(init=False)
    # The progress and the outcome.
    state: Turn = field(init=False)
    # Set once a local answer was tried.
    intents: LocalAnswerer | None = None
    # When it had been tried, in seconds since the start.
    recognition_seconds: float | None = None
    tool_runs: list[ToolRun] = field(default_factory=list)
    # Set if a model was asked.
    live_context: TurnContext | None = None
    # The figures of the turn that has ended, without its requests and its text.
    record: TurnRecord = field(init=False)
    # What the trace, the event and the sensor of the last route show of the answer.
    attributes: Mapping[str, Any] = field(default_factory=dict)

    def begin(self, place: TurnPlace, reply: ChatLogReply, open_log: Callable[[], ChatLogReply] | None = None) -> None:
        """Begin the turn, which has the window only once it has entered that."""
        self.place, self.reply, self.chat_log, self.open_log = place, reply, reply.chat_log, open_log
        self.window = place.window
        self.id = str(uuid7())
        self.record_id = None if self.agent.config.record is RecordLevel.OFF else self.id
        self.dialog = MemoryDialog(self.agent.last_memory_answers, self.window_key, self.speaker)
        hass, satellite = self.agent.hass, None
        if self.user_input.satellite_id is not None:
            satellite = er.async_get(hass).async_get(self.user_input.satellite_id)
        satellite_id = satellite.id if satellite else None
        self.reminders = ReminderAnswerer(hass, async_get_reminders(hass), self.speaker, satellite_id)
        self.stats_before = self.stats_after = place.stats()

    @property
    def is_in_background(self) -> bool:
        """Whether the answer was promised."""
        return hasattr(self, "state") and self.state.is_in_background

    @property
    def current_agent(self) -> Agent:
        """The turn's agent, or its successor if the account was reloaded during the turn."""
        return async_find_agent(self.agent.hass, self.agent.id) or self.agent

    async def answer_locally(self, situation: Situation) -> LocalMessagesBuilder | RouteReason:
        """See `TurnHost.answer_locally`."""
        config, hass, memory = self.agent.config, self.agent.hass, None
        can_ask_model = config.routing is not RoutingMode.LOCAL_ONLY
        if (store := async_get_store(hass)) is not None:
            # forgetting works without memory
            memory = MemoryAnswerer(
                hass,
                store,
                self.speaker,
                partial(async_run_deletion, hass),
                self.dialog,
                has_memory=config.memory,
                can_model_forget=config.memory and bool(config.llm_apis) and can_ask_model,
            )
        self.intents = LocalAnswerer(
            hass,
            self.user_input,
            self.chat_log,
            self.gate,
            can_ask_model=can_ask_model,
            model_has_tools=bool(config.llm_apis),
            memory=memory,
            reminders=self.reminders,
            turn_questions=TurnQuestionAnswerer(hass, self.agent.id, self.speaker, self.window.conversation_id),
        )
        answer = await self.intents.answer_input(situation)
        self.recognition_seconds = time.monotonic() - self.state.started_at
        if self.intents.own_reason is not None:
            self.state.decision = RouteDecision(Route.LOCAL, self.intents.own_reason)
        return answer

    def defer(self, work: Callable[[], None]) -> None:
        """See `TurnHost.defer`."""
        self.place.defer_work(partial(run_each, (work,), "A step after a turn failed"))

    def get_window(self) -> Window:
        """See `TurnHost.get_window`."""
        return self.place.window

    async def enter_window(self) -> Window:
        """See `TurnHost.enter_window`."""
        self.reply.waits_for_turn = has_waited = not self.place.is_first
        try:
            window = self.window = await self.place.enter(self.wait_ends_at - asyncio.get_running_loop().time())
        except WindowBusy as err:
            raise ConversationBusy(str(err)) from err
        self.reply.waits_for_turn = False
        if has_waited and self.open_log is not None:
            self.reply = self.open_log()
            self.chat_log = self.reply.chat_log
        self.stats_before = self.stats_after = window.stats()
        return window

    async def build_question(self) -> Question:
        """See `TurnHost.build_question`. Adds the tools to the chat log."""
        hass, agent, user_input, chat_log = self.agent.hass, self.agent, self.user_input, self.chat_log
        model, config = agent.model, agent.config
        # an agent without a model only answers locally
        assert model is not None
        fallback = async_find_fallback_agents(hass, config.fallback_agents, self.entity_id, self.gate)
        llm_context = user_input.as_llm_context(DOMAIN)
        stamp = InputStamp(
            dt_util.now(), self.speaker.name_for_stamp, *_find_device_and_area(hass, user_input.device_id)
        )
        context = self.live_context = TurnContext(agent, self.window, self.speaker, stamp, self.dialog.open_question)
        context.sees = self.gate.reach.sees
        context.start_search()
        files, pictures = await async_read_input_files(hass, chat_log), dict[str, Attachment]()
        own_tools = build_turn_memory_tools(self)
        if config.llm_apis and (sentences := self.reminders.find_sentences_for_tools()) is not None:
            own_tools += make_reminder_tools(self.reminders, sentences)
        api = await _async_get_tools(agent, llm_context, own_tools, pictures, self.gate.reach)
        if api is not None:
            api.on_run, api.withhold = self.tool_runs.append, self.gate.async_withhold_call
        chat_log.llm_api = api
        chat_log.llm_input_provided_index = len(chat_log.content)
        tools = agent.tool_schemas.convert_tools(api)
        sizes = {"schema_tokens": count_tools_tokens(tools, agent.counter), "live_tokens": context.max_tokens}
        in_system = config.context_placement is ContextPlacement.SYSTEM
        system = _build_system_prompt(self, llm_context, api)
        await context.async_read_memory()
        # it would answer wrongly for other reasons, and fallback agents are asked anyway
        asks_default = self.state.decision.reason in REASONS_FOR_DEFAULT_AGENT
        asks_default &= HOME_ASSISTANT_AGENT not in config.fallback_agents
        question = Question(
            model=model.with_budget(**sizes),
            system_prompt=append_prompt_facts(system, context.sent.facts),
            stamp_prefix="" if in_system else stamp.format_prefix(),
            tools=tools,
            empty_answer_phrase=await async_get_done_phrase(hass, user_input.language),
            failure_phrase=await async_get_spoken_text(hass, user_input.language, "exceptions", "unexpected.message"),
            deferred_tools=() if api is None else tuple(api.deferred.values()),
            may_claim_change=self.may_claim_change,
            is_spoken=user_input.satellite_id is not None,
            default_agent=EntityAgent(hass, HOME_ASSISTANT_AGENT, self.gate) if asks_default else None,
            fallback_agents=tuple(
                [each.with_budget(**sizes) if isinstance(each, Model) else each for each in fallback]
            ),
            files=files,
            pictures=pictures,
            build_live_context=context.build_live_context,
        )
        agent.head_start.on_question(question, system, self.window_key)
        return question

    def may_claim_change(self, answer: str) -> bool:
        """Return whether an answer may claim a change of something in the home that the input orders."""
        text, language = self.speaker.text, self.user_input.language
        home_states = async_get_home_states(self.agent.hass)
        if home_states is None or not is_order(text, language):
            return False
        return home_states.get_home(language).may_claim_change(text, answer)

    def on_billed(self, billed: BilledRequest) -> None:
        """See `TurnHost.on_billed`."""
        if (agent := async_find_agent(self.agent.hass, billed.model.agent_id)) is not None:
            agent.learn_usage(billed.request, billed.usage)

    def run_in_background(self, work: Coroutine[Any, Any, None]) -> None:
        """See `TurnHost.run_in_background`."""
        entry = self.current_agent.entry
        entry.async_create_background_task(self.agent.hass, work, f"model of {self.entity_id} is loaded")


def build_turn_memory_tools(turn: ConversationTurn) -> tuple[llm.Tool, ...]:
    """Return the memory tools for a turn, or none if the agent has no memory."""

    async def run_deletion(work: Callable[[Memory], MemoryReply]) -> MemoryReply:
        done: MemoryReply | None = None
        try:
            done = await async_run_deletion(turn.agent.hass, work)
        finally:
            # an exchange that asks for a confirmation has to stay in the window until the user confirms
            if done is None or done.on_yes is None:
                turn.agent.windows.rewrite_after_turn(turn.window_key, remove_forget_exchange)
        return done

    return _memory_tools(turn.agent, turn.speaker, run_deletion, turn.dialog)


def _memory_tools(agent: Agent, speaker: Speaker, forget: ForgetCallback, dialog: MemoryDialog) -> tuple[llm.Tool, ...]:
    """Return the memory tools, only for an agent with other tools, because not every model supports tools."""
    store = async_get_store(agent.hass)
    if not agent.config.memory or store is None or not agent.config.llm_apis:
        return ()
    languages = async_get_home_languages(agent.hass, store.spoken_languages)
    return make_tools(store, speaker, forget, dialog, languages)


async def async_build_inputless_question(agent: Agent, llm_context: llm.LLMContext) -> Question:
    """Return a question without user input, for requests that reuse the system prompt that was sent before.

    The agent has a model. Raises `ToolsUnavailable`.
    """
    assert agent.model is not None
    model, api = agent.model, await _async_get_inputless_tools(agent, llm_context)
    deferred = () if api is None else tuple(api.deferred.values())
    return Question(model, "", "", agent.tool_schemas.convert_tools(api), "", deferred_tools=deferred)


async def async_weigh_request(agent: Agent, llm_context: llm.LLMContext) -> RequestWeight | None:
    """Return the weight of the agent's requests, or None without a model. The facts are those of its newest turn.

    Raises `TurnError`.
    """
    if agent.model is None or agent.config.routing is RoutingMode.LOCAL_ONLY:
        return None
    api = await _async_get_inputless_tools(agent, llm_context)
    nobody, stamp = Speaker("", agent.hass.config.language), InputStamp(dt_util.now())
    window = Window("", agent.config.policy, agent.counter)
    context = TurnContext(agent, window, nobody, stamp, "")
    profiles = list(agent.profiles.values()) if agent.config.memory else [([], PromptFacts())]
    instructions = _render_instructions(agent, nobody, llm_context).strip()
    weight = weigh_request(
        instructions,
        _format_home_prompt(agent, api, instructions),
        agent.tool_schemas.convert_tools(api),
        facts=profiles[-1][1].text if profiles else None,
        budget=replace(agent.model.planned_budget, live_tokens=context.max_tokens),
        counter=agent.counter,
    )
    return weight if api is None else replace(weight, sources=api.tokens_by_source)


async def _async_get_inputless_tools(agent: Agent, llm_context: llm.LLMContext) -> SafeAPIInstance | None:
    """Return the tools without user input. Those of memory are sent and counted, but never called."""
    nobody = Speaker("", agent.hass.config.language)
    own = _memory_tools(agent, nobody, partial(async_run_deletion, agent.hass), MemoryDialog({}, "", nobody))
    return await _async_get_tools(agent, llm_context, own, {})


async def _async_get_tools(
    agent: Agent,
    llm_context: llm.LLMContext,
    memory_tools: tuple[llm.Tool, ...],
    pictures: dict[str, Attachment],
    reach: Reach | None = None,
) -> SafeAPIInstance | None:
    """Return the tools of a turn. `pictures` receives the pictures that the model looks at."""
    knows_states, own, sees = agent.config.sends_states, memory_tools, reach.sees if reach else None
    if knows_states and not (reach and reach.is_talk_only):
        own = (*memory_tools, *create_home_tools(agent.counter.count, sees))
    if agent.config.cameras and agent.model is not None and agent.model.profile.images and sees is None:
        own += create_look_tools(agent.hass, pictures)
    api = await async_get_tools(agent.hass, agent.config.llm_apis, llm_context, own, knows_states=knows_states)
    if api is not None and reach is not None:
        api.tools = [tool for tool in api.tools if reach.has_tool(tool)]
    if api is not None and agent.model is not None and api.source_by_tool:
        defer_tools(api, agent.tool_schemas.convert_tools(api), agent.model.planned_budget.context_tokens)
    return api


def _build_system_prompt(turn: ConversationTurn, llm_context: llm.LLMContext, api: llm.APIInstance | None) -> str:
    """Return the system prompt without the profile of facts."""
    extra = turn.user_input.extra_system_prompt or turn.chat_log.extra_system_prompt
    turn.chat_log.extra_system_prompt = extra
    instructions = _render_instructions(turn.agent, turn.speaker, llm_context)
    reach = turn.gate.reach
    home = "" if reach.is_talk_only else _format_home_prompt(turn.agent, api, instructions, reach.sees)
    parts = [part.strip() for part in (instructions, home, extra or "")]
    return "\n".join(filter(None, parts))


def _format_home_prompt(
    agent: Agent, api: llm.APIInstance | None, instructions: str, sees: Callable[[str], bool] | None = None
) -> str:
    """Return the prompt of the tools, with an overview of the home that suits the model, and the hint on its states.

    Everything is estimated without the learned factors, because with each of them the overview would change.
    """
    assert agent.model is not None
    if api is None:
        return ""
    estimate = partial(count_text_tokens, TextKind.FIXED, counter=EstimatedCounter())
    tokens = estimate(instructions)
    budget = replace(
        agent.model.planned_budget,
        schema_tokens=count_tools_tokens(agent.tool_schemas.convert_tools(api)),
        live_tokens=calculate_live_limit(agent.config),
    )
    home_states, prompt = async_get_home_states(agent.hass), api.api_prompt if sees is None else ""
    if home_states is not None:
        prompt = home_states.overview.shorten_prompt(api, calculate_overview_limit(budget, tokens), sees).strip()
    room = calculate_max_live_tokens(budget, tokens + estimate(prompt), 0)
    sends_states = home_states is not None and agent.config.sends_states and bool(home_states.get_home().entities)
    return "\n".join(filter(None, (prompt, STATES_HINT if sends_states and room >= MIN_STATES_TOKENS else "")))


def _render_instructions(agent: Agent, speaker: Speaker, llm_context: llm.LLMContext) -> str:
    hass = agent.hass
    variables = {
        "ha_name": clean_name(hass.config.location_name),
        "user_name": speaker.user_name,
        "llm_context": llm_context,
    }
    try:
        return str(Template(agent.config.instructions, hass).async_render(variables, parse_result=False))
    except TemplateError as err:
        _LOGGER.warning("The instructions of the agent cannot be rendered: %s", err)
        raise PromptRenderingFailed("the instructions cannot be rendered") from err


def _find_device_and_area(hass: HomeAssistant, device_id: str | None) -> tuple[str | None, str | None]:
    device = dr.async_get(hass).async_get(device_id) if device_id else None
    if device is None:
        return None, None
    area_id = dr.async_get_effective_area_id(hass, device)
    area = ar.async_get(hass).async_get_area(area_id) if area_id else None
    return device.name_by_user or device.name, area.name if area else None
