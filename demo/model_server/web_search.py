"""The scripted model's web searches: the phrases that ask for one, and what it finds.

Whether the model may search depends on the request. Each format has its own events for a search.
"""

from dataclasses import replace
import re

from .conversation import Answer, Conversation, Page, WebSearch
from .rules import Rule, compile_pattern

_DEFAULT_TOPIC = "the news"


def build_search_answer(topic: str, text: str = "", *, paused: bool = False) -> Answer:
    """Return an answer that searches for a topic and then says the text, each of whose sentences cites a page."""
    word = re.sub(r"\W+", "-", topic.lower()).strip("-") or "page"
    pages = (
        Page(f"All about {topic}", f"https://news.example/{word}_(today)?id=1&lang=en"),
        Page(f"{topic.capitalize()} explained", f"https://www.encyclopedia.example/wiki/{word}"),
    )
    said = text or f"There is good news about {topic}. Experts agree."
    return Answer(text=said, search=WebSearch("I will look that up.", (topic,), pages, paused))


def _search(match: re.Match[str], conversation: Conversation) -> Answer:
    if not conversation.can_search:
        return Answer(text="I cannot search the web.")
    found = match.groupdict()
    answer = build_search_answer(found.get("topic") or _DEFAULT_TOPIC, paused=bool(found.get("long")))
    return replace(answer, search=None) if conversation.is_resumed else answer


SEARCH_RULES: tuple[Rule, ...] = (
    Rule(compile_pattern(r"search the web (?P<long>at length )?for (?P<topic>.+?)"), _search),
    Rule(compile_pattern(r"what(?: is|'s) in the news.*"), _search),
)
