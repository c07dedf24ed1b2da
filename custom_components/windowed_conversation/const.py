"""Keys of the configuration, and the values that some of them can have."""

from enum import StrEnum

DOMAIN = "windowed_conversation"

# The integration that serves the page, and the path of the page in it.
FRONTEND = "frontend"
PANEL_PATH = "windowed-conversation"

CONF_API_VERSION = "api_version"
CONF_ASK_BEFORE_OPENING = "ask_before_opening"
CONF_CAMERAS = "cameras"
CONF_COMPACTION = "compaction"
CONF_CONTEXT_PLACEMENT = "context_placement"
CONF_CONTEXT_TOKENS = "context_tokens"
CONF_DEPLOYMENT = "deployment"
CONF_DEVICE_OWNERS = "device_owners"
CONF_EFFORT = "effort"
CONF_EXACT_COUNTING = "exact_counting"
CONF_EXPIRY_HOURS = "expiry_hours"
CONF_FAMILY = "model_family"
CONF_IMAGES = "images"
CONF_FORMAT = "format"
CONF_HISTORY_TOKENS = "history_tokens"
CONF_MAX_TOOL_TURNS = "max_tool_turns"
CONF_MEMORY = "memory"
CONF_MEMORY_DAYS = "memory_days"
CONF_FILLER = "filler"
CONF_FILLER_SENTENCE = "filler_sentence"
CONF_FALLBACK_AGENTS = "fallback_agents"
CONF_OPENING_CODE = "opening_code"
CONF_PERSISTENCE = "persistence"
CONF_PROVIDER = "provider"
CONF_RECORD = "record"
CONF_MAX_ANSWER_TOKENS = "max_answer_tokens"
CONF_ROUTING = "routing"
CONF_SCOPE = "scope"
CONF_STATES = "states"
CONF_TEMPERATURE = "temperature"
CONF_SUMMARIZE = "summarize"
CONF_TOOL_RESULTS = "tool_results"
CONF_TRIM_SHARE = "trim_share"
CONF_TURN_TIMEOUT = "turn_timeout"
CONF_WEB_SEARCH = "web_search"

# The provider of an account: none, any compatible server, or a vendor.
PROVIDER_NONE = "none"
PROVIDER_OPENAI_CHAT = "openai_chat"
PROVIDER_OPENAI = "openai"
PROVIDER_AZURE = "azure"
PROVIDER_ANTHROPIC = "anthropic"
PROVIDER_GEMINI = "gemini"

# The fields of a row in the table of satellites and people: the device's id, the user id of its owner or of a person,
# the entity that names the speaker and for how many seconds it is believed, the speech-to-text engine with a prefix,
# whether that counts like a login, and the permission.
ATTR_DEVICE = "device"
ATTR_PERSON = "person"
ATTR_ENTITY = "entity"
ATTR_SECONDS = "seconds"
ATTR_ENGINE = "engine"
ATTR_TRUSTED = "trusted"
ATTR_PERMISSION = "permission"

SUBENTRY_CONVERSATION = "conversation"
# core's name for the subentries of AI tasks
SUBENTRY_AI_TASK = "ai_task_data"

# The id of the LLM API that offers the memory tools to agents of other integrations.
MEMORY_API_ID = f"{DOMAIN}_memory"

# The URLs that the account forms suggest. Users can enter the URL of a gateway instead.
OPENAI_URL = "https://api.openai.com/v1"
ANTHROPIC_URL = "https://api.anthropic.com"
GEMINI_URL = "https://generativelanguage.googleapis.com"


class Persistence(StrEnum):
    """The conversations that survive a restart: none, those with an id that the user chose, or all."""

    OFF = "off"
    OWN_IDS = "own"
    ALL = "all"


class MemoryMode(StrEnum):
    """The content of memory: nothing, facts and turns, or also summaries or suggestions from ended conversations."""

    OFF = "off"
    ON = "on"
    SUMMARIES = "summaries"
    SUGGESTIONS = "suggestions"


class RecordLevel(StrEnum):
    """The content of a turn's record: nothing, statistics only, or also text that is deleted after some days."""

    OFF = "off"
    STATISTICS = "statistics"
    FULL = "full"


class AskMode(StrEnum):
    """The speakers who are asked before something opens the house; an option of the agent."""

    NEVER = "never"
    UNKNOWN = "unknown"
    ALWAYS = "always"


class OpenAIFormat(StrEnum):
    """The API format of an OpenAI account: Responses or Chat Completions."""

    RESPONSES = "responses"
    CHAT = "chat"


DEFAULT_OPENAI_FORMAT = OpenAIFormat.RESPONSES
