"""The capabilities of a model, as Anthropic's Models API states them."""

from ..json_values import get_member
from ..models import Effort, ModelCapabilities, ReasoningStyle

_EFFORTS = (Effort.LOW, Effort.MEDIUM, Effort.HIGH)


def read_capabilities(stated: object) -> ModelCapabilities:
    """Return the capabilities from a model's entry in the list, with None for each one that is not stated."""
    reasoning, efforts = _read_reasoning(stated)
    return ModelCapabilities(
        images=_read_images(stated),
        context_editing=_is_supported(stated, "context_management", "clear_tool_uses_20250919"),
        answer_schemas=_is_supported(stated, "structured_outputs"),
        web_search=_is_supported(stated, "server_tools", "web_search"),
        reasoning=reasoning,
        efforts=efforts,
        # a model does not think unless the request enables it
        default=Effort.NONE if efforts else None,
    )


def _is_supported(stated: object, *path: str) -> bool | None:
    """Return whether the capability at a path is supported, or None if that is not stated."""
    for name in path:
        stated = get_member(stated, name)
    value = get_member(stated, "supported")
    return value if isinstance(value, bool) else None


def _read_images(stated: object) -> bool | None:
    """Return whether a model accepts images and PDFs. A model that refuses either of them gets neither."""
    both = (_is_supported(stated, "image_input"), _is_supported(stated, "pdf_input"))
    return False if False in both else both[0]


def _read_reasoning(stated: object) -> tuple[ReasoningStyle | None, tuple[Effort, ...] | None]:
    """Return the parameter for reasoning and the efforts that a model accepts."""
    if _is_supported(stated, "thinking") is False:
        return ReasoningStyle.NONE, None
    efforts = tuple([each for each in _EFFORTS if _is_supported(stated, "effort", each)])
    if efforts and _is_supported(stated, "thinking", "types", "adaptive"):
        return ReasoningStyle.ADAPTIVE, (Effort.NONE, *efforts)
    if _is_supported(stated, "thinking", "types", "enabled"):
        return ReasoningStyle.BUDGET, (Effort.NONE, *_EFFORTS)
    return None, None
