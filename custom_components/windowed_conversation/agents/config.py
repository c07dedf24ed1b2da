"""The configuration of an agent. Its own settings override the account's options, which override the defaults."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from homeassistant.config_entries import ConfigEntry, ConfigSubentry
from homeassistant.const import CONF_LLM_HASS_API, CONF_MODEL, CONF_PROMPT
from homeassistant.helpers import llm

from .. import const
from ..bridge.account import can_compact, can_search, is_local_server
from ..bridge.fillers import FillerMode
from ..const import MEMORY_API_ID, AskMode, MemoryMode, Persistence, RecordLevel
from ..home.bridge.tools import GetStatesTool
from ..providers import DEFAULT_SETTINGS, Effort, ModelSettings, WebSearch
from ..turn.context import ContextPlacement
from ..turn.limits import DEFAULT_TURN_TIMEOUT
from ..turn.routing import RoutingMode, Scope
from ..turn.tool_names import FIND_TOOLS
from ..window import WindowPolicy

DEFAULT_ROUTING = RoutingMode.LOCAL_FIRST
DEFAULT_SCOPE = Scope.CONVERSATION
DEFAULT_ASK_BEFORE_OPENING = AskMode.UNKNOWN
DEFAULT_CAMERAS = False
DEFAULT_COMPACTION = False
DEFAULT_CONTEXT_PLACEMENT = ContextPlacement.MESSAGE
DEFAULT_EXACT_COUNTING = False
DEFAULT_EXPIRY_HOURS = 24
DEFAULT_MEMORY = MemoryMode.ON
DEFAULT_FILLER = FillerMode.ON
DEFAULT_MEMORY_DAYS = 90
DEFAULT_PERSISTENCE = Persistence.OWN_IDS
DEFAULT_RECORD = RecordLevel.STATISTICS
DEFAULT_POLICY = WindowPolicy()
DEFAULT_STATES = True
# data and texts for a notification are longer than a spoken answer
DEFAULT_TASK_ANSWER_TOKENS = 4000
DEFAULT_WEB_SEARCH = False

# The instructions of a new agent: written for speech, against the mistakes that models make in homes. An agent
# without any instructions gets those of Home Assistant.
DEFAULT_INSTRUCTIONS = """\
You are the voice of this home. Answer in one or two short spoken sentences in the user's language, \
without lists or emoji.
- Act at once when it is clear what is meant; say only what the tool's result confirms.
- "It", "the other one": what was last spoken of. "Here": the area in the context. If two fit, ask.
- The newest states in the context are true; older messages and memory may not be. \
Look up what is missing; never guess.
- Memory: what people once said; the newest wins. Ignore it unless it answers.
- Unlock, disarm, open garages only on a clear request.
- If you cannot or do not know, say so."""

# The temperature for a model in the home network, because a model that calls tools should not vary much. Without a
# temperature in the request, Ollama uses 1.0 and ignores the model's own file:
# https://github.com/ollama/ollama/blob/main/openai/openai.go
_LOCAL_SERVER_TEMPERATURE = 0.6


@dataclass(frozen=True, slots=True)
class AgentConfig:
    """The settings of an agent, which override the account's options, which override the defaults."""

    name: str
    routing: RoutingMode
    scope: Scope
    model: str
    # The name of the model. On Azure, the model that the deployment runs.
    family: str
    settings: ModelSettings
    # The entities that are asked if the model does not answer.
    fallback_agents: tuple[str, ...]
    instructions: str
    llm_apis: tuple[str, ...]
    policy: WindowPolicy
    context_placement: ContextPlacement
    exact_counting: bool
    # The context size that the user entered.
    context_tokens: int | None
    # In seconds.
    turn_timeout: float
    expiry_seconds: float
    persistence: Persistence
    memory_mode: MemoryMode
    filler: FillerMode
    # The sentence of the user's that a satellite speaks, or an empty text.
    filler_sentence: str
    record: RecordLevel
    sends_states: bool
    # Whether the model of a compatible server reads pictures.
    images: bool
    # Whether the model may look through exposed cameras.
    cameras: bool
    ask_before_opening: AskMode
    # The hash of the code that is asked for instead of a yes, or an empty text.
    opening_code: str

    @property
    def memory(self) -> bool:
        """Whether anything is remembered."""
        return self.memory_mode is not MemoryMode.OFF

    @property
    def reads_ended(self) -> bool:
        """Whether the model reads a conversation once it has ended."""
        reads = self.memory_mode in {MemoryMode.SUMMARIES, MemoryMode.SUGGESTIONS}
        return reads and self.routing is not RoutingMode.LOCAL_ONLY

    @classmethod
    def from_entry(cls, entry: ConfigEntry, subentry: ConfigSubentry) -> Self:
        """Read an agent's configuration from its account and subentry. Raises `ValueError` if it is invalid."""
        data, provider = subentry.data, entry.data[const.CONF_PROVIDER]
        # an Azure deployment can have another name than its model
        is_azure, has_model = provider == const.PROVIDER_AZURE, provider != const.PROVIDER_NONE
        routing = data.get(const.CONF_ROUTING, DEFAULT_ROUTING) if has_model else RoutingMode.LOCAL_ONLY
        return cls(
            name=subentry.title,
            routing=RoutingMode(routing),
            scope=Scope(data.get(const.CONF_SCOPE, DEFAULT_SCOPE)),
            model=str(data.get(CONF_MODEL, "")),
            family=str(data.get(const.CONF_FAMILY if is_azure else CONF_MODEL, "")),
            settings=_parse_model_settings(entry.data, subentry),
            fallback_agents=tuple(data.get(const.CONF_FALLBACK_AGENTS, ())),
            instructions=str(data.get(CONF_PROMPT) or llm.DEFAULT_INSTRUCTIONS_PROMPT),
            # our agents have their own tools for the same memory
            llm_apis=tuple(api for api in data.get(CONF_LLM_HASS_API, ()) if api != MEMORY_API_ID),
            policy=_parse_window_policy(entry, data),
            context_placement=ContextPlacement(data.get(const.CONF_CONTEXT_PLACEMENT, DEFAULT_CONTEXT_PLACEMENT)),
            exact_counting=bool(data.get(const.CONF_EXACT_COUNTING, DEFAULT_EXACT_COUNTING)),
            context_tokens=int(data[const.CONF_CONTEXT_TOKENS]) if const.CONF_CONTEXT_TOKENS in data else None,
            turn_timeout=float(data.get(const.CONF_TURN_TIMEOUT, DEFAULT_TURN_TIMEOUT)),
            expiry_seconds=float(entry.options.get(const.CONF_EXPIRY_HOURS, DEFAULT_EXPIRY_HOURS)) * 3600,
            persistence=Persistence(entry.options.get(const.CONF_PERSISTENCE, DEFAULT_PERSISTENCE)),
            memory_mode=MemoryMode(data.get(const.CONF_MEMORY, DEFAULT_MEMORY)),
            filler=FillerMode(entry.options.get(const.CONF_FILLER, DEFAULT_FILLER)),
            filler_sentence=str(entry.options.get(const.CONF_FILLER_SENTENCE, "")),
            record=RecordLevel(data.get(const.CONF_RECORD, DEFAULT_RECORD)),
            # only agents that have the tools of Assist
            sends_states=llm.LLM_API_ASSIST in data.get(CONF_LLM_HASS_API, ())
            and bool(data.get(const.CONF_STATES, DEFAULT_STATES)),
            images=bool(data.get(const.CONF_IMAGES, False)),
            cameras=bool(data.get(const.CONF_CAMERAS, DEFAULT_CAMERAS)),
            ask_before_opening=AskMode(data.get(const.CONF_ASK_BEFORE_OPENING, DEFAULT_ASK_BEFORE_OPENING)),
            opening_code=str(data.get(const.CONF_OPENING_CODE, "")),
        )


def get_memory_days(account: ConfigEntry[Any]) -> int:
    """Return the number of days for which the turns of an account's agents are kept."""
    return int(account.options.get(const.CONF_MEMORY_DAYS, DEFAULT_MEMORY_DAYS))


def default_memory(account: Mapping[str, Any]) -> MemoryMode:
    """Return the mode that the form of a new agent suggests. A request to a server at home costs nothing."""
    return MemoryMode.SUMMARIES if is_local_server(account) else DEFAULT_MEMORY


def default_temperature(account: Mapping[str, Any]) -> float | None:
    """Return the temperature for an agent without a setting, or None to use the provider's default."""
    return _LOCAL_SERVER_TEMPERATURE if is_local_server(account) else None


def _parse_model_settings(account: Mapping[str, Any], subentry: ConfigSubentry) -> ModelSettings:
    agent, is_task = subentry.data, subentry.subentry_type == const.SUBENTRY_AI_TASK
    max_answer_tokens = DEFAULT_TASK_ANSWER_TOKENS if is_task else DEFAULT_SETTINGS.max_answer_tokens
    searches = can_search(account) and bool(agent.get(const.CONF_WEB_SEARCH, DEFAULT_WEB_SEARCH))
    return ModelSettings(
        effort=Effort(agent[const.CONF_EFFORT]) if const.CONF_EFFORT in agent else None,
        temperature=agent.get(const.CONF_TEMPERATURE, default_temperature(account)),
        compaction=bool(agent.get(const.CONF_COMPACTION, DEFAULT_COMPACTION)),
        max_answer_tokens=int(agent.get(const.CONF_MAX_ANSWER_TOKENS, max_answer_tokens)),
        # the set-up adds the country and the time zone
        web_search=WebSearch() if searches else None,
    )


def _parse_window_policy(entry: ConfigEntry, agent: Mapping[str, Any]) -> WindowPolicy:
    options = entry.options
    compacts = can_compact(entry.data) and bool(agent.get(const.CONF_COMPACTION, DEFAULT_COMPACTION))
    percent = options.get(const.CONF_TRIM_SHARE)
    return WindowPolicy(
        history_tokens=int(options.get(const.CONF_HISTORY_TOKENS, DEFAULT_POLICY.history_tokens)),
        trim_share=None if percent is None else float(percent) / 100,
        tool_results=options.get(const.CONF_TOOL_RESULTS, DEFAULT_POLICY.tool_results),
        max_tool_turns=options.get(const.CONF_MAX_TOOL_TURNS),
        summarize=compacts or bool(options.get(const.CONF_SUMMARIZE, DEFAULT_POLICY.summarize)),
        live_tools=frozenset({GetStatesTool.name}),
        lasting_tools=frozenset({FIND_TOOLS}),
    )
