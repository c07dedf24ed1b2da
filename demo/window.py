"""The content of a conversation's window after each turn, from the action get_window, printed for a person.

The words and actions of the turn are printed in say.py.
"""

import asyncio
from datetime import UTC, datetime
import textwrap

from demo.client import Client, Json
from demo.setup_agent import DOMAIN

_WIDTH = 90
_INDENT = " " * 9

_NOTHING: Json = {"evicted_exchanges": 0, "evicted_tokens": 0, "trims": 0}

# Seconds that the model has for a summary.
_PATIENCE = 30.0


class WindowWatch:
    """Prints the messages that come in and go out; `summarizes` is whether a summary is to be waited for after a trim.

    The client is that of the person whose conversation it is: nobody else may see it.
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
        """Print the changes of a turn; only one that asked the model is followed by a summary."""
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
        """Return whether there is a window: forgetting may have emptied it."""
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
