"""Print the content of a conversation's window after each turn, as the action get_window returns it.

say.py prints the text and tool calls of the turn.
"""

import asyncio
from datetime import UTC, datetime
import textwrap

from demo.client import Client, Json
from demo.setup_agent import DOMAIN

_WIDTH = 90
_INDENT = " " * 9

_NOTHING: Json = {"evicted_exchanges": 0, "evicted_tokens": 0, "trims": 0}

# Seconds to wait for the model's summary.
_PATIENCE = 30.0


class WindowWatch:
    """Prints added and evicted messages; `summarizes` is whether to wait for a summary after a trim.

    Each method needs the client of the person who owns the conversation, because nobody else may read it.
    """

    def __init__(self, agent_id: str, *, summarizes: bool) -> None:
        self._agent_id = agent_id
        self._summarizes = summarizes
        self._before: dict[str, Json] = {}
        self._summarized = datetime.fromtimestamp(0, UTC)
        self._owed = False

    async def protect(self, client: Client, conversation_id: str) -> None:
        """Tag the newest exchange as important."""
        await client.call(f"{DOMAIN}.tag_exchange", self._agent_id, conversation_id=conversation_id, add=["important"])

    async def tell(self, client: Client, conversation_id: str, *, asked_model: bool) -> None:
        """Print the changes of a turn; a summary only follows a turn that sent a request to the model."""
        if not await self._is_open(client, conversation_id):
            self._before.pop(conversation_id, None)
            print("Window   empty: what may repeat the forgotten has left it, too")
            return
        figures = await self._window(client, conversation_id, content="statistics")
        self._print_trim(conversation_id, figures)
        self._print_figures(figures)
        if self._owed and asked_model:
            self._owed = False
            await self._print_summary(client, conversation_id)

    def _print_trim(self, conversation_id: str, figures: Json) -> None:
        before, self._before[conversation_id] = self._before.get(conversation_id, _NOTHING), figures
        if figures["trims"] == before["trims"]:
            return
        exchanges, tokens = (figures[name] - before[name] for name in ("evicted_exchanges", "evicted_tokens"))
        if not exchanges:
            print("Trim     no exchange: it was enough to shorten results of tools")
            return
        print(f"Trim     {_exchanges(exchanges)}, {tokens} tokens: out of the window in one block")
        self._owed = self._summarizes

    @staticmethod
    def _print_figures(figures: Json) -> None:
        tokens, exchanges = f"{figures['current_tokens']} of {figures['max_tokens']}", figures["exchange_count"]
        protected = figures["protected_tokens"]
        print(f"Window   {tokens} tokens in {_exchanges(exchanges)}{f', {protected} protected' if protected else ''}")

    async def _print_summary(self, client: Client, conversation_id: str) -> None:
        try:
            async with asyncio.timeout(_PATIENCE):
                summary = await self._new_summary(client, conversation_id)
        except TimeoutError:
            print("Summary  none came")
            return
        print(textwrap.fill(summary, _WIDTH, initial_indent="Summary  ", subsequent_indent=_INDENT))
        self._print_figures(await self._window(client, conversation_id, content="statistics"))

    async def _new_summary(self, client: Client, conversation_id: str) -> str:
        while True:
            window = await self._window(client, conversation_id)
            for message in window["messages"]:
                if message["role"] != "assistant" or "summary" not in message["tags"]:
                    continue
                created = datetime.fromisoformat(message["created"])
                if created > self._summarized:
                    self._summarized = created
                    return str(message["content"])
            await asyncio.sleep(0.05)

    async def _is_open(self, client: Client, conversation_id: str) -> bool:
        """Return whether the conversation has a window, since forgetting may have emptied it."""
        answer = await client.post(
            f"/api/services/{DOMAIN}/list_conversations?return_response", {"entity_id": self._agent_id}
        )
        return conversation_id in {each["conversation_id"] for each in answer["service_response"]["conversations"]}

    async def _window(self, client: Client, conversation_id: str, **more: str) -> Json:
        data = {"entity_id": self._agent_id, "conversation_id": conversation_id, **more}
        answer = await client.post(f"/api/services/{DOMAIN}/get_window?return_response", data)
        response: Json = answer["service_response"]
        return response


def _exchanges(number: int) -> str:
    return f"{number} exchange{'s' if number != 1 else ''}"
