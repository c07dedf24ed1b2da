"""Helpers for tests with windows that are so small that evicted exchanges are summarized."""

from typing import Any

from custom_components.windowed_conversation.agents.agent import Agent
from custom_components.windowed_conversation.const import (
    CONF_HISTORY_TOKENS,
    CONF_SUMMARIZE,
)
from custom_components.windowed_conversation.window import Window
from demo.model_server import ModelServer

SMALL = {CONF_HISTORY_TOKENS: 600, CONF_SUMMARIZE: True}
ASKED = "[Summarize the conversation above"
STORY = "tell me a story in 120 words"


def asked_for(model_server: ModelServer) -> list[dict[str, Any]]:
    """Return the bodies of the requests for a summary."""
    bodies = [request.body for request in model_server.requests]
    return [body for body in bodies if str(body["messages"][-1]["content"]).startswith(ASKED)]


def the_window(agent: Agent) -> Window:
    """Return the agent's only window."""
    (window,) = agent.windows.loaded_windows().values()
    return window


def count_summaries(agent: Agent) -> int:
    """Return the number of summaries in the agent's only window."""
    return the_window(agent).stats().tag_distribution.get("summary", 0)
