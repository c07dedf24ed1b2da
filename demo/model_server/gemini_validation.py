"""The rules for a valid request to Gemini's generateContent, as pure functions of a parsed body.

`gemini_part_validation` checks single parts. Thought signatures are checked here, because the position of a part
determines whether it needs one. https://ai.google.dev/gemini-api/docs/thought-signatures
"""

import base64
import binascii
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from .answer_schema_validation import find_gemini_schema_violations
from .gemini_part_validation import FUNCTION_NAME_PATTERN, find_part_violations
from .gemini_prompt import get_declarations, get_object, get_parts, to_camel_case, to_standard_base64
from .residue import unseal_content
from .usage import encode_json
from .violations import Violation, find_tool_violations, find_unknown_keys, is_nonblank_text
from .wire import get_objects

_KNOWN_KEYS = frozenset(
    {"contents", "generationConfig", "safetySettings", "serviceTier", "systemInstruction", "toolConfig", "tools"}
)
_ROLES = ("user", "model")
_ACCEPTED_SIGNATURE = "skip_thought_signature_validator"


def find_gemini_violations(body: Any, model: str) -> list[Violation]:
    """Return all violations of the rules of generateContent; the list is empty for a valid request."""
    if not isinstance(body, dict):
        return [Violation("not_an_object", "", "the body is no JSON object")]
    body = to_camel_case(body)
    contents = body.get("contents")
    if not isinstance(contents, list) or not contents or not all(isinstance(each, dict) for each in contents):
        return [Violation("no_contents", "contents", "contents is not specified")]
    checks = (
        find_unknown_keys(body, _KNOWN_KEYS),
        _check_tools(body, model),
        _check_system(body),
        _check_order(contents),
        _check_pairs(contents),
        _check_signatures(contents, model),
        find_gemini_schema_violations(body, model),
    )
    found = [found for check in checks for found in check]
    return found + [each for at, content in enumerate(contents) for each in _check_content(content, f"contents[{at}]")]


def _check_tools(body: dict[str, Any], model: str) -> Iterator[Violation]:
    if "tools" not in body:
        return
    declared = get_declarations(body)
    if not declared and not _offers_search(body):
        yield Violation("tools_empty", "tools", "no function is declared")
    if declared and _offers_search(body):
        yield from _check_search(body, model)
    yield from find_tool_violations([_normalize_schema(each) for each in declared], name_form=FUNCTION_NAME_PATTERN)
    for at, declaration in enumerate(declared):
        schema = get_object(declaration, "parameters") if isinstance(declaration, dict) else {}
        if schema and not schema.get("properties"):
            text = "parameters.properties: should be non-empty for OBJECT type"
            yield Violation("tool_properties", f"tools[{at}]", text)
        if isinstance(declaration, dict) and {"parameters", "parametersJsonSchema"} <= declaration.keys():
            yield Violation("tool_parameters", f"tools[{at}]", "parameters and parametersJsonSchema exclude each other")


def _offers_search(body: dict[str, Any]) -> bool:
    return any("googleSearch" in tool for tool in get_objects(body["tools"]))


def _check_search(body: dict[str, Any], model: str) -> Iterator[Violation]:
    """Yield the violations of a search beside functions."""
    config = get_object(body, "toolConfig")
    if config.get("includeServerSideToolInvocations") is not True:
        text = "Please enable tool_config.include_server_side_tool_invocations to use Built-in tools."
        yield Violation("search_with_functions", "toolConfig", text)
    if model.startswith("gemini-2"):
        yield Violation("search_with_functions", "tools", "Tool use with function calling is unsupported")
    if get_object(config, "functionCallingConfig").get("mode") == "AUTO":
        yield Violation("search_mode", "toolConfig", "the mode AUTO is not available beside built-in tools")


def _normalize_schema(declaration: object) -> object:
    if not isinstance(declaration, dict):
        return declaration
    schema = declaration.get("parametersJsonSchema", declaration.get("parameters", {"type": "object"}))
    return {"name": declaration.get("name"), "parameters": schema}


def _check_system(body: dict[str, Any]) -> Iterator[Violation]:
    if "systemInstruction" not in body:
        return
    parts = get_parts(body["systemInstruction"])
    if not parts or not all(is_nonblank_text(part.get("text")) for part in parts):
        yield Violation("system_empty", "systemInstruction", "no parts with text in them")


def _check_order(contents: list[dict[str, Any]]) -> Iterator[Violation]:
    for at, content in enumerate(contents):
        if content.get("role") not in _ROLES:
            yield Violation("role", f"contents[{at}]", "Please use a valid role: user, model")
    if contents[0].get("role") != "user":
        yield Violation("user_first", "contents[0]", "the first content is no user's")
    if contents[-1].get("role") != "user":
        yield Violation("ends_with_user", f"contents[{len(contents) - 1}]", "nothing to answer")


def _get_objects(content: dict[str, Any], key: str) -> list[dict[str, Any]]:
    return [get_object(part, key) for part in get_parts(content) if key in part]


def _check_pairs(contents: list[dict[str, Any]]) -> Iterator[Violation]:
    for at, (before, content) in enumerate(pairwise([{}, *contents, {}])):
        where = f"contents[{at}]"
        called, responses = _get_objects(before, "functionCall"), _get_objects(content, "functionResponse")
        if _get_objects(content, "functionCall") and before.get("role") != "user":
            text = "function call turn comes immediately after a user turn or after a function response turn"
            yield Violation("call_order", where, text)
        if responses and not called:
            text = "function response turn comes immediately after a function call turn"
            yield Violation("result_orphan", where, text)
        elif len(called) != len(responses):
            text = "the number of function response parts is equal to the number of function call parts"
            yield Violation("result_count", where, text)
        elif _count_names(called) != _count_names(responses) or _has_wrong_ids(called, responses):
            yield Violation("result_mismatch", where, "the responses are not those of the calls")
        if responses and len(responses) < len(get_parts(content)):
            yield Violation("result_mixed", where, "function responses are not alone in their content")


def _count_names(functions: list[dict[str, Any]]) -> Counter[str]:
    return Counter(str(function.get("name")) for function in functions)


def _has_wrong_ids(calls: list[dict[str, Any]], responses: list[dict[str, Any]]) -> bool:
    """Return whether the calls had ids that the responses lack."""
    ids = Counter(str(call["id"]) for call in calls if call.get("id"))
    return bool(ids - Counter(str(response.get("id")) for response in responses))


def _check_signatures(contents: list[dict[str, Any]], model: str) -> Iterator[Violation]:
    """Yield the violations in the thought signatures of the current turn: all contents after the last user message."""
    said = [
        at for at, each in enumerate(contents) if each.get("role") == "user" and not _belongs_to_results(contents, at)
    ]
    start = said[-1] + 1 if said else 0
    for at, content in enumerate(contents[start:], start):
        parts = get_parts(content)
        for number, part in enumerate(parts):
            if "thoughtSignature" in part and not is_valid_signature(part["thoughtSignature"], model):
                yield Violation("residue_foreign", f"contents[{at}].parts[{number}]", "Corrupted thought signature.")
            yield from _check_search_part(part, f"contents[{at}].parts[{number}]", model)
        if _get_ids(parts, "toolCall") != _get_ids(parts, "toolResponse"):
            yield Violation("search_pairs", f"contents[{at}]", "each toolCall must have its toolResponse after it")
        calls = [part for part in parts if "functionCall" in part]
        # Models before Gemini 3 also sign calls, but do not require the signatures.
        if calls and "thoughtSignature" not in calls[0] and not model.startswith("gemini-2"):
            text = "Function call is missing a thought_signature in functionCall parts."
            yield Violation("signature_missing", f"contents[{at}]", text)


def _belongs_to_results(contents: list[dict[str, Any]], at: int) -> bool:
    """Return whether a content has function responses, or the pictures that directly follow them."""
    if _is_function_response(contents[at]):
        return True
    has_pictures = any("inlineData" in part for part in get_parts(contents[at]))
    return has_pictures and at > 0 and _is_function_response(contents[at - 1])


def _get_ids(parts: list[dict[str, Any]], key: str) -> list[str]:
    return [str(get_object(part, key).get("id")) for part in parts if key in part]


def _check_search_part(part: dict[str, Any], where: str, model: str) -> Iterator[Violation]:
    """Yield a violation for a part of a search that is not exactly as the model sent it."""
    if "toolCall" not in part and "toolResponse" not in part:
        return
    sent = {key: value for key, value in part.items() if key != "thoughtSignature"}
    sealed = unseal_content(model, to_standard_base64(str(part.get("thoughtSignature"))))
    if sealed != encode_json(sent):
        yield Violation("search_changed", where, "Corrupted thought signature of a server-side tool invocation.")


def _is_function_response(content: dict[str, Any]) -> bool:
    return bool(_get_objects(content, "functionResponse"))


def is_valid_signature(signature: object, model: str) -> bool:
    """Return whether this model created the signature, or it is the documented one for calls from another source."""
    if not isinstance(signature, str):
        return False
    standard = to_standard_base64(signature)
    return (
        signature == _ACCEPTED_SIGNATURE
        or _decode_base64(standard) == _ACCEPTED_SIGNATURE.encode()
        or unseal_content(model, standard) is not None
    )


def _decode_base64(signature: str) -> bytes:
    try:
        return base64.b64decode(signature, validate=True)
    except binascii.Error, ValueError:
        return b""


def _check_content(content: dict[str, Any], where: str) -> Iterator[Violation]:
    parts = content.get("parts")
    if not isinstance(parts, list) or not parts:
        yield Violation("content_empty", where, "must include at least one parts field")
        return
    for at, part in enumerate(parts):
        yield from find_part_violations(part, f"{where}.parts[{at}]", str(content.get("role")))
