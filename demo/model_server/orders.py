"""Orders in a request, which are the sentences with MUST, and a conversation in which the scripted model obeys them."""

from dataclasses import replace
import re

from .conversation import Conversation, Turn

_ORDER_PATTERN = re.compile(r"[^.!?\n]*\bMUST\b[^.!?\n]*[.!?]?")
# Core's prompt: "You MUST use the provided tool to retrieve live context."
_LOOK_UP_PATTERN = re.compile(r"\bMUST use\b.*\btool\b.*\blive context\b", re.IGNORECASE)
_LISTED_STATES_PATTERN = re.compile(r"(?<=; )states: [^;\]]*(?:; )?|^## States\n.+$", re.MULTILINE)


def list_orders(conversation: Conversation) -> list[str]:
    """Return the sentences with MUST in the system prompt, and in the context of each user message."""
    texts = [turn.text for turn in conversation.turns if turn.role == "system"]
    texts += [value for turn in conversation.turns if turn.role == "user" for value in turn.context.values()]
    return [found[0].strip() for text in texts for found in _ORDER_PATTERN.finditer(text)]


def obey_orders(conversation: Conversation) -> Conversation:
    """Return the conversation as an obedient model uses it: after an order to look up states, without listed states.

    Raises ValueError if it contains an order that the scripted model does not know.
    """
    orders = list_orders(conversation)
    if unknown := [order for order in orders if not _LOOK_UP_PATTERN.search(order)]:
        raise ValueError(f"unknown order: {unknown[0]}")
    return replace(conversation, turns=tuple(map(_hide_listed_states, conversation.turns))) if orders else conversation


def _hide_listed_states(turn: Turn) -> Turn:
    is_context = turn.role == "system" or turn.text.startswith("[CONTEXT:")
    return replace(turn, text=_LISTED_STATES_PATTERN.sub("", turn.text)) if is_context else turn
