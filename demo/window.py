"""Print the content of a conversation's window after each turn, as the action get_conversation returns it.

say.py prints the text and tool calls of the turn.
"""

import asyncio
from datetime import UTC, datetime
import textwrap
from typing import Any

from demo.client import Client, Json
from demo.setup_agent import DOMAIN

_LINE_CHARS = 90
_INDENT = " " * 9

_EMPTY_STATISTICS: Json = {"evicted": {"exchanges": 0, "tokens": 0}, "trims": 0}

# Seconds to wait for the model's summary.
_SUMMARY_TIMEOUT = 30.0


class WindowPrinter:
    """Prints added and evicted messages; `summarizes` is whether to wait for a summary after a trim.

    Each method needs the client of the person who owns the conversation, because nobody else may read it.
    """

    def __init__(self, agent_id: str, *, summarizes: bool) -> None:
        self._agent_id = agent_id
        self._waits_for_summary = summarizes
        self._statistics_by_conversation: dict[str, Json] = {}
        self._last_summary_at = datetime.fromtimestamp(0, UTC)
        self._expects_summary = False

    async def tag_important(self, client: Client, conversation_id: str) -> None:
        """Tag the newest exchange as important."""
        await client.call_action(
            f"{DOMAIN}.tag_exchange", self._agent_id, conversation_id=conversation_id, add=["important"]
        )

    async def print_changes(self, client: Client, conversation_id: str, *, asked_model: bool) -> None:
        """Print the changes of a turn; a summary only follows a turn that sent a request to the model."""
        if not await self._has_window(client, conversation_id):
            self._statistics_by_conversation.pop(conversation_id, None)
            print("Window   empty: what may repeat the forgotten has left it, too")
            return
        figures = await self._fetch_content(client, conversation_id, "statistics")
        self._print_trim(conversation_id, figures)
        self._print_statistics(figures)
        if self._expects_summary and asked_model:
            self._expects_summary = False
            await self._print_summary(client, conversation_id)

    def _print_trim(self, conversation_id: str, figures: Json) -> None:
        before, self._statistics_by_conversation[conversation_id] = (
            self._statistics_by_conversation.get(conversation_id, _EMPTY_STATISTICS),
            figures,
        )
        if figures["trims"] == before["trims"]:
            return
        exchanges, tokens = (figures["evicted"][name] - before["evicted"][name] for name in ("exchanges", "tokens"))
        if not exchanges:
            print("Trim     no exchange: it was enough to shorten results of tools")
            return
        print(f"Trim     {_exchanges(exchanges)}, {tokens} tokens: out of the window in one block")
        self._expects_summary = self._waits_for_summary

    @staticmethod
    def _print_statistics(figures: Json) -> None:
        tokens, exchanges = f"{figures['tokens']} of {figures['max_tokens']}", figures["exchanges"]
        protected = figures["protected_tokens"]
        print(f"Window   {tokens} tokens in {_exchanges(exchanges)}{f', {protected} protected' if protected else ''}")

    async def _print_summary(self, client: Client, conversation_id: str) -> None:
        try:
            async with asyncio.timeout(_SUMMARY_TIMEOUT):
                summary = await self._wait_for_summary(client, conversation_id)
        except TimeoutError:
            print("Summary  none came")
            return
        print(textwrap.fill(summary, _LINE_CHARS, initial_indent="Summary  ", subsequent_indent=_INDENT))
        self._print_statistics(await self._fetch_content(client, conversation_id, "statistics"))

    async def _wait_for_summary(self, client: Client, conversation_id: str) -> str:
        while True:
            for message in await self._fetch_content(client, conversation_id, "messages"):
                if message["role"] != "assistant" or "summary" not in message["tags"]:
                    continue
                created = datetime.fromisoformat(message["created"])
                if created > self._last_summary_at:
                    self._last_summary_at = created
                    return str(message["content"])
            await asyncio.sleep(0.05)

    async def _has_window(self, client: Client, conversation_id: str) -> bool:
        """Return whether the conversation has a window, since forgetting may have emptied it."""
        answer = await client.post(
            f"/api/services/{DOMAIN}/list_conversations?return_response", {"entity_id": self._agent_id}
        )
        return conversation_id in {each["conversation_id"] for each in answer["service_response"]["conversations"]}

    async def _fetch_content(self, client: Client, conversation_id: str, content: str) -> Any:
        data = {"entity_id": self._agent_id, "conversation_id": conversation_id, "content": content}
        answer = await client.post(f"/api/services/{DOMAIN}/get_conversation?return_response", data)
        return answer["service_response"][content]


def _exchanges(number: int) -> str:
    return f"{number} exchange{'s' if number != 1 else ''}"
