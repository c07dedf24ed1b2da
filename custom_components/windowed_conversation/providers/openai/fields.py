"""Fields and errors that both OpenAI formats share: tools, attachments, effort, caching, usage, and error codes."""

from base64 import b64encode
from collections.abc import Mapping
from contextlib import AbstractContextManager
from functools import lru_cache, partial
from http import HTTPStatus
import json
from typing import Any

import openai

from ...window import Attachment
from .. import errors
from ..encoder import add_items, encode_name, flatten_choices, get_mime_type
from ..events import Request, ToolSchema, Usage
from ..json_values import as_code, drop_non_finite, get_count, get_member
from ..models import ReasoningStyle, find_accepted_effort
from ..sizes import exceeds_context, read_context_tokens
from ..transport import map_errors

# The codes in error bodies, in errors in mid-stream, and in failed responses
# (openai/types/responses/response_error.py).
_CODES_BY_ERROR: dict[type[errors.ProviderError], str] = {
    errors.AuthError: "invalid_api_key",
    errors.BadRequest: (
        "data_residency_mismatch empty_image_file image_file_too_large image_parse_error image_too_large "
        "image_too_small invalid_base64_image invalid_encrypted_content invalid_function_parameters invalid_image "
        "invalid_image_format invalid_image_mode invalid_type invalid_value missing_required_parameter "
        "unknown_parameter unsupported_image_media_type unsupported_parameter unsupported_value"
    ),
    errors.ContextOverflow: "context_length_exceeded exceed_context_size_error",
    errors.ModelNotFound: "DeploymentNotFound NotFoundError model_not_found not_found_error",
    errors.QuotaError: "billing_hard_limit_reached billing_not_active insufficient_quota",
    errors.RateLimited: "rate_limit_exceeded",
    errors.AnswerRefused: "bio_policy content_filter image_content_policy_violation invalid_prompt "
    "misalignment_policy_violation",
    errors.Unavailable: "server_error",
}

_ERROR_BY_CODE = {code: kind for kind, codes in _CODES_BY_ERROR.items() for code in codes.split()}

# Answers at this tier cost half, may be slower, and are refused while there is no room:
# https://platform.openai.com/docs/guides/flex-processing
FLEXIBLE_TIER = "flex"

# vLLM names one or more parameters that are too large: https://github.com/vllm-project/vllm/issues/33425
_TOO_LARGE_PARAMETER = "input_tokens"


def is_image(attachment: Attachment) -> bool:
    """Return whether an attachment is sent as an image, not as a file."""
    return attachment.mime_type.startswith("image/")


def data_url(attachment: Attachment) -> str:
    """Return an attachment as a `data:` URL."""
    return f"data:{get_mime_type(attachment)};base64,{b64encode(attachment.data).decode()}"


def get_file_name(attachment: Attachment) -> str:
    """Return the name of a file, which both formats require."""
    return attachment.name or f"attachment.{attachment.mime_type.rpartition('/')[2]}"


def encode_effort(request: Request) -> str | None:
    """Return the effort to send, see `find_accepted_effort`, or None if the model has no such parameter."""
    taken = find_accepted_effort(request.profile, request.settings.effort)
    return taken.value if taken and request.profile.reasoning is ReasoningStyle.EFFORT else None


def encode_tool_choice(request: Request) -> dict[str, str]:
    """Return the parameter that forbids or requires calls, or an empty dict if the model may choose."""
    choice = "none" if not request.may_call else "required" if request.requires_call else None
    return {"tool_choice": choice} if choice else {}


def encode_sampling(request: Request) -> dict[str, float | None]:
    """Return the temperature, or an empty dict if the model accepts none."""
    return {"temperature": request.settings.temperature} if request.profile.sampling else {}


def asks_for_flexible_tier(request: Request) -> bool:
    """Return whether a request asks for the flexible tier."""
    return request.is_background and request.profile.flexible_tier


def encode_tier(request: Request) -> dict[str, str]:
    """Return the parameter of the service tier, or an empty dict for the project's default."""
    return {"service_tier": FLEXIBLE_TIER} if asks_for_flexible_tier(request) else {}


def encode_verbosity(request: Request) -> dict[str, str]:
    """Return the parameter for a short spoken answer; empty if nobody hears the answer or the model has none."""
    return {"verbosity": "low"} if request.is_spoken and request.profile.verbosity else {}


def is_tier_refusal(err: openai.APIStatusError) -> bool:
    """Return whether a server refused a request because of its tier: no capacity, or no such tier for the model."""
    if err.status_code == HTTPStatus.BAD_REQUEST:
        return err.param == "service_tier"
    no_room = (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.REQUEST_TIMEOUT)
    return (
        err.status_code in no_room and _ERROR_BY_CODE.get(find_known_code(err.code, err.type)) is not errors.QuotaError
    )


# Requests of one agent offer the same tools repeatedly.
@lru_cache(maxsize=256)
def encode_tool(tool: ToolSchema) -> Mapping[str, Any]:
    """Return a tool as a function description for both formats, without the schema keywords that they refuse."""
    parameters = add_items(flatten_choices(tool.parameters))
    return {"name": encode_name(tool.name), "description": tool.description, "parameters": parameters}


def encode_arguments(arguments: Mapping[str, Any]) -> str:
    """Return a call's arguments as JSON text for both formats, without numbers that JSON cannot express."""
    return json.dumps(drop_non_finite(dict(arguments)), ensure_ascii=False)


def read_usage(usage: object, prompt: str, answer: str) -> Usage:
    """Return a `Usage`. `prompt` and `answer` are the format's names for input and output tokens."""
    prompt_details = get_member(usage, f"{prompt}_tokens_details")
    answer_details = get_member(usage, f"{answer}_tokens_details")
    return Usage(
        input=get_count(usage, f"{prompt}_tokens"),
        cached=get_count(prompt_details, "cached_tokens"),
        output=get_count(usage, f"{answer}_tokens"),
        cache_written=get_count(prompt_details, "cache_write_tokens"),
        reasoning=get_count(answer_details, "reasoning_tokens"),
    )


def convert_errors(request: Request | None = None) -> AbstractContextManager[None]:
    """Convert every error of the SDK and its HTTP client into a `ProviderError`. `request` is the sent request."""
    return map_errors(openai, partial(_convert_status_error, request))


def convert_error_event(event: object) -> errors.ProviderError:
    """Return the `ProviderError` for an event, or a complete answer, that reports an error."""
    error = get_member(event, "error")
    return build_stream_error(get_member(error, "code"), get_member(error, "type"), get_member(event, "code"))


def build_stream_error(*codes: object) -> errors.ProviderError:
    """Return the error for a server's error codes in mid-stream; the first known code applies."""
    code = find_known_code(*codes)
    return errors.build_server_error(HTTPStatus.OK, code, _ERROR_BY_CODE.get(code))


def refusal(reason: str) -> errors.AnswerRefused:
    """Return the error for an answer that the model or a filter withheld."""
    return errors.AnswerRefused(f"kept back, reason {reason}", reason)


def find_known_code(*codes: object) -> str:
    """Return the first known code, or else the first value; empty if that is too long to be a code."""
    return next((code for code in codes if isinstance(code, str) and code in _ERROR_BY_CODE), as_code(codes[0]))


def is_form_refusal(err: openai.APIStatusError, request: Request) -> bool:
    """Return whether a server refused a request for its form, not for its length, its model, or a limit."""
    return type(_convert_status_error(request, err)) is errors.BadRequest


def _convert_status_error(request: Request | None, err: openai.APIStatusError) -> errors.ProviderError:
    # llama.cpp and vLLM put their code into the type field.
    status, code = err.status_code, find_known_code(err.code, err.type)
    named = err.param.split(",") if isinstance(err.param, str) else ()
    is_too_large = status == HTTPStatus.BAD_REQUEST and _TOO_LARGE_PARAMETER in map(str.strip, named)
    return errors.build_server_error(
        status,
        code,
        errors.ContextOverflow if is_too_large else _ERROR_BY_CODE.get(code),
        delay=_parse_retry_after(err.response.headers),
        context_tokens=read_context_tokens(err.body),
        may_be_too_long=None if code in _ERROR_BY_CODE else lambda: request is not None and exceeds_context(request),
    )


def _parse_retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds to wait. Azure also sends milliseconds, which are more precise."""
    milliseconds = errors.parse_seconds(headers.get("retry-after-ms"))
    return errors.parse_retry_after(headers) if milliseconds is None else milliseconds / 1000
