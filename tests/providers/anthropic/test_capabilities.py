"""Tests for the capabilities that the list of models states, and the profile that they change."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from custom_components.windowed_conversation.providers.models import (
    Effort,
    ReasoningStyle,
    Vendor,
    find_profile,
)

from ..byte_server import JSON, ByteServer
from ..wires.anthropic import model_page
from .conftest import Connect

YES, NO = {"supported": True}, {"supported": False}
ADAPTIVE = {**YES, "types": {"adaptive": YES, "enabled": NO}}
BUDGET = {**YES, "types": {"adaptive": NO, "enabled": YES}}
EFFORTS = {**YES, "low": YES, "medium": YES, "high": YES, "max": YES}
# A family without any pattern in the table, which is otherwise taken for one with adaptive thinking.
NEW = find_profile(Vendor.ANTHROPIC, "claude-sonnet-9")


@pytest.fixture
def listed(connect: Connect, byte_server: ByteServer) -> Any:
    """Return a function that returns the capabilities of a model that is listed with these ones."""

    async def listed(capabilities: object) -> Mapping[str, Any]:
        byte_server.set_reply(model_page([{"id": "a", "capabilities": capabilities}]), headers=JSON)
        (model,) = await connect().list_models()
        return model.capabilities

    return listed


async def test_stated_capabilities_are_listed(listed: Any) -> None:
    capabilities = await listed(
        {
            "image_input": YES,
            "pdf_input": YES,
            "structured_outputs": NO,
            "context_management": {**YES, "clear_tool_uses_20250919": NO},
            "server_tools": {**YES, "web_search": YES},
            "thinking": ADAPTIVE,
            "effort": {**EFFORTS, "high": NO},
        }
    )

    assert capabilities == {
        "images": True,
        "answer_schemas": False,
        "context_editing": False,
        "web_search": True,
        "reasoning": ReasoningStyle.ADAPTIVE,
        "efforts": (Effort.NONE, Effort.LOW, Effort.MEDIUM),
        "default": Effort.NONE,
    }


@pytest.mark.parametrize("capabilities", [None, {}, [], 5, {"image_input": None, "effort": "low"}, {"thinking": [YES]}])
async def test_what_is_not_stated_changes_nothing(capabilities: object, listed: Any) -> None:
    assert await listed(capabilities) == {}


@pytest.mark.parametrize(
    ("stated", "reasoning"),
    [
        ({"thinking": {**NO, "types": {"disabled": YES}}}, ReasoningStyle.NONE),
        ({"thinking": ADAPTIVE, "effort": EFFORTS}, ReasoningStyle.ADAPTIVE),
        ({"thinking": BUDGET, "effort": NO}, ReasoningStyle.BUDGET),
        ({"thinking": {**YES, "types": {"adaptive": YES, "enabled": YES}}, "effort": NO}, ReasoningStyle.BUDGET),
        ({"thinking": YES}, None),
    ],
)
async def test_parameter_for_reasoning_is_the_one_that_the_model_accepts(
    stated: dict[str, Any], reasoning: ReasoningStyle | None, listed: Any
) -> None:
    assert (await listed(stated)).get("reasoning") is reasoning


@pytest.mark.parametrize(
    ("image", "pdf", "images"),
    [(YES, YES, True), (YES, NO, False), (NO, YES, False), (YES, None, True), (None, None, None)],
)
async def test_model_that_refuses_pictures_or_pdfs_gets_neither(
    image: object, pdf: object, images: bool | None, listed: Any
) -> None:
    assert (await listed({"image_input": image, "pdf_input": pdf})).get("images") is images


async def test_stated_capabilities_replace_those_of_the_family(listed: Any) -> None:
    stated = await listed({"image_input": NO, "thinking": BUDGET, "structured_outputs": YES})

    profile = replace(NEW, **stated)

    assert (NEW.images, NEW.reasoning) == (True, ReasoningStyle.ADAPTIVE)
    assert (profile.images, profile.reasoning, profile.answer_schemas) == (False, ReasoningStyle.BUDGET, True)
    assert profile.caching is NEW.caching
