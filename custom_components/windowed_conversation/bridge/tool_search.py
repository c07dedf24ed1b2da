"""Tools that are found when they are needed: the schemas of large sources are not sent; two tools find and call them.

The names of such tools are in the description of the first, so requests have the same bytes before and after a search.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
import math
from operator import attrgetter
import re
from typing import override

from homeassistant.core import HomeAssistant
from homeassistant.helpers import llm
from homeassistant.util.json import JsonValueType
import probatio

from ..const import DOMAIN
from ..memory.core import Words
from ..providers import ToolSchema, count_tools_tokens
from ..turn.tool_names import CALL_TOOL, FIND_TOOLS
from .errors import refuse
from .tools import SafeAPIInstance, describe_schema

# The schemas that other sources than Home Assistant's own and ours may take in each request: this number of tokens, or
# this share of the model's context.
_MAX_SCHEMA_TOKENS = 2_500
_MAX_CONTEXT_SHARE = 0.1

# The limits of one result: tools, and the tokens of their schemas beyond the first.
_MAX_FOUND_TOOLS = 6
_MAX_FOUND_TOKENS = 2_500
# The limits of the list of names, of the description that is searched, and of a query.
_MAX_LISTED_CHARS = 8_000
_MAX_SEARCHED_CHARS = 1_000
_MAX_QUERY_CHARS = 200

# A word of the name says more than one of the description.
_NAME_WEIGHT = 3
_NAME_PATTERN = re.compile(r"[\w-]+")
_WORD_LIMIT_PATTERN = re.compile(r"(?<=[a-z])(?=[A-Z])|[_\W]+")

_NOT_FOUND_TEXT = "No tool has these words. Try others."
_UNKNOWN_TEXT = f"There is no tool of this name. Find it with {FIND_TOOLS}."


def defer_tools(api: SafeAPIInstance, schemas: Iterable[ToolSchema], context_tokens: int | None) -> None:
    """Defer the tools of the largest sources until the schemas of the others fit, and add the tools that find them.

    The tools of Home Assistant's own API and ours are never deferred. `context_tokens` is the size of the model's
    context, or None if it is unknown.
    """
    schemas_by_source: dict[str, list[ToolSchema]] = {}
    for schema in sorted(schemas, key=attrgetter("name")):
        if (source := api.source_by_tool.get(schema.name)) is not None:
            schemas_by_source.setdefault(source, []).append(schema)
    sizes = {source: count_tools_tokens(each) for source, each in schemas_by_source.items()}
    limit = _MAX_SCHEMA_TOKENS if context_tokens is None else int(context_tokens * _MAX_CONTEXT_SHARE)
    sent = dict(sizes)
    for source in sorted(sizes, key=lambda each: (-sizes[each], each)):
        if sum(sent.values()) <= min(limit, _MAX_SCHEMA_TOKENS):
            break
        sent[source] = 0
    api.tokens_by_source = {source: (size, sent[source]) for source, size in sizes.items()}
    deferred = {source: schemas_by_source[source] for source in sorted(sent) if not sent[source]}
    if not deferred:
        return
    api.deferred = {schema.name: schema for each in deferred.values() for schema in each}
    names = {source: [schema.name for schema in each] for source, each in deferred.items()}
    api.tools = [*api.tools, FindTools(api.deferred, _list_names(names, api.api_prompt)), CallTool()]


def _list_names(names_by_source: Mapping[str, list[str]], prompt: str) -> str:
    """Return a line for each source with the names of its tools, unless the prompt has all of them already."""
    shown = set(_NAME_PATTERN.findall(prompt))
    unseen = {source: each for source, each in names_by_source.items() if not shown.issuperset(each)}
    text = "\n".join([f"{source}: {', '.join(each)}" for source, each in unseen.items()])
    return text if len(text) <= _MAX_LISTED_CHARS else f"{text[:_MAX_LISTED_CHARS]}…"


def rank_tools(query: str, schemas: Sequence[ToolSchema], languages: tuple[str, ...]) -> list[ToolSchema]:
    """Return the tools that have words of a query, the best first. Rare words count more, as do words of the name.

    Slow with many tools, because each of their words is stemmed.
    """
    words = Words(languages)
    wanted = words.build_term_set(query)
    names = [wanted & words.build_term_set(_WORD_LIMIT_PATTERN.sub(" ", each.name)) for each in schemas]
    texts = [wanted & words.build_term_set(each.description[:_MAX_SEARCHED_CHARS]) for each in schemas]
    matches = list(zip(names, texts, schemas, strict=True))
    counts = Counter(term for name, text, _ in matches for term in name | text)
    weights = {term: math.log1p(len(schemas) / count) for term, count in counts.items()}
    scored = [
        (-sum(weights[term] * (_NAME_WEIGHT if term in name else 1) for term in name | text), schema)
        for name, text, schema in matches
        if name or text
    ]
    return [schema for _, schema in sorted(scored, key=lambda each: (each[0], each[1].name))]


class FindTools(llm.Tool):
    """Finds deferred tools by the words of their names and descriptions, and returns their schemas."""

    name = FIND_TOOLS
    title = "Find tools"
    integration = DOMAIN
    annotations = llm.ToolAnnotations(read_only=True, destructive=False, idempotent=True, open_world=False)
    parameters = probatio.Schema({probatio.Required("words"): str})

    def __init__(self, schemas: Mapping[str, ToolSchema], listing: str) -> None:
        self._schemas = schemas
        self.description = f"Returns how to call the tools that fit these words best. There are more tools:\n{listing}"

    @override
    async def async_call(
        self, hass: HomeAssistant, tool_input: llm.ToolInput, llm_context: llm.LLMContext
    ) -> llm.ToolResult:
        query = str(self.parameters(tool_input.tool_args)["words"])[:_MAX_QUERY_CHARS]
        languages = tuple(dict.fromkeys((llm_context.language or hass.config.language, hass.config.language)))
        found = await hass.async_add_executor_job(rank_tools, query, tuple(self._schemas.values()), languages)
        if not found:
            return refuse("not_found", _NOT_FOUND_TEXT)
        tools, tokens = list[JsonValueType](), 0
        for schema in found[:_MAX_FOUND_TOOLS]:
            tokens += count_tools_tokens([schema])
            if tools and tokens > _MAX_FOUND_TOKENS:
                break
            tools.append(describe_schema(schema))
        return llm.ToolResult(data={"call_with": CALL_TOOL, "tools": tools})


class CallTool(llm.Tool):
    """Stands for the deferred tools in a request. A call of it is replaced by a call of the tool that it names."""

    name = CALL_TOOL
    title = "Call a tool"
    description = f"Calls one of the tools that {FIND_TOOLS} has found."
    integration = DOMAIN
    annotations = llm.ToolAnnotations(read_only=False, destructive=False, idempotent=False, open_world=False)
    parameters = probatio.Schema({probatio.Required("name"): str, probatio.Optional("arguments"): dict})

    @override
    async def async_call(
        self, hass: HomeAssistant, tool_input: llm.ToolInput, llm_context: llm.LLMContext
    ) -> llm.ToolResult:
        return refuse("unknown_tool", _UNKNOWN_TEXT)
