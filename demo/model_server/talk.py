"""The scripted model's skills that need no tools: it asks questions, tells stories, thinks aloud and repeats text.

`facts` has its knowledge; `home`, `lists` and `memory` have its use of tools.
"""

from collections.abc import Iterator
from itertools import cycle, islice
import re

from .conversation import Answer, Conversation
from .faults import FAULTS
from .rules import Rule, pattern

_SIZE = "Which size would you like?"
_STORY_WORDS = 300
_SENTENCES = (
    "Once upon a time there was {topic}, and nobody in the village could explain it.",
    "Every morning the baker looked out of her window and wondered what would become of it.",
    "The children said that it was older than the church, and the church said nothing.",
    "One evening a traveller came by, put down her bag, and asked for a glass of water.",
    "She had seen many things on the road, but {topic} was new even to her.",
    "So she sat down on the wall, and the whole village sat down beside her.",
    "They talked until the lamps were lit, and then they talked until the lamps went out.",
    "In the end it was the smallest of them who found the answer, and she laughed.",
)


def _greet(_match: re.Match[str], _conversation: Conversation) -> Answer:
    return Answer(text="Hello! I am a scripted model. Ask me what I can do.")


def _time(_match: re.Match[str], conversation: Conversation) -> Answer:
    time = conversation.newest.context.get("time")
    return Answer(text=f"It is {time}." if time else "I was not told the time.")


def _room(_match: re.Match[str], conversation: Conversation) -> Answer:
    context = conversation.newest.context
    room = context.get("area") or context.get("room")
    return Answer(text=f"You are in the {room}." if room else "I was not told which room you are in.")


def _order(_match: re.Match[str], _conversation: Conversation) -> Answer:
    return Answer(text=f"Gladly. {_SIZE}")


def _ordered(match: re.Match[str], _conversation: Conversation) -> Answer:
    return Answer(text=f"Your {match['size'].lower()} pizza is on its way.")


def _story(match: re.Match[str], _conversation: Conversation) -> Answer:
    words = islice(_story_words(match["topic"] or "a lamp that never went out"), int(match["words"] or _STORY_WORDS))
    return Answer(text=" ".join(words))


def _story_words(topic: str) -> Iterator[str]:
    for sentence in cycle(_SENTENCES):
        yield from sentence.format(topic=topic).split()


def _thoughts(topic: str) -> str:
    return (
        f"The user wants me to think about {topic}. First I ask myself what I know about {topic}: very little. "
        "Then I ask myself what I could say all the same. A short answer will do."
    )


def _think(match: re.Match[str], _conversation: Conversation) -> Answer:
    topic = match["topic"]
    return Answer(reasoning=_thoughts(topic), text=f"I have thought about {topic}, and there is much to like.")


def _think_in_text(match: re.Match[str], _conversation: Conversation) -> Answer:
    topic = match["topic"]
    return Answer(text=f"<think>{_thoughts(topic)}</think>\n\nI have thought about {topic} out loud.")


def _repeat(_match: re.Match[str], conversation: Conversation) -> Answer:
    return Answer(text=f"You wrote: {conversation.newest.text}")


def _describe(_match: re.Match[str], conversation: Conversation) -> Answer:
    sent = [f"{each.media_type} of {each.size} bytes" for each in conversation.newest.attachments]
    return Answer(text=f"I was sent {' and '.join(sent)}." if sent else "I was sent no picture.")


def _count(_match: re.Match[str], conversation: Conversation) -> Answer:
    yours = sum(turn.role == "user" for turn in conversation.turns)
    return Answer(text=f"I was sent {len(conversation.turns)} messages, {yours} of them yours.")


def _oldest(_match: re.Match[str], conversation: Conversation) -> Answer:
    oldest = next(turn.said for turn in conversation.turns if turn.role == "user")
    return Answer(text=f"The oldest thing I can see is: {oldest}")


def _fail(match: re.Match[str], _conversation: Conversation) -> Answer:
    if re.sub(r"\W+", "_", match["name"].lower()) in FAULTS:
        return Answer(text="This answer is about to go wrong, in the way that you have asked for just now.")
    return Answer(text=f"I can fail with: {', '.join(FAULTS)}.")


TALK: tuple[Rule, ...] = (
    Rule(pattern(r"(?:an? |the )?(?P<size>small|medium|large|big|family)\b.*"), _ordered, after=_SIZE),
    Rule(pattern(r"(?:please )?fail with (?:an? )?(?P<name>.+?)"), _fail),
    Rule(pattern(r"what(?: is|'s| do you see) (?:in|on) the (?:picture|image|photo|document|file)s?.*"), _describe),
    Rule(pattern(r"(?:tell me )?what time (?:is it|it is).*"), _time),
    Rule(pattern(r"(?:which|what) room am i in.*|where am i.*"), _room),
    Rule(pattern(r"(?:i (?:want|would like) to )?order (?:a )?pizza.*"), _order),
    Rule(pattern(r"tell me a (?:long )?story(?: about (?P<topic>.+?))?(?: in (?P<words>\d{1,5}) words)?"), _story),
    Rule(pattern(r"think (?:out loud|in tags) about (?P<topic>.+?)"), _think_in_text),
    Rule(pattern(r"think about (?P<topic>.+?)"), _think),
    Rule(pattern(r"repeat my message.*"), _repeat),
    Rule(pattern(r"how many messages (?:do you see|can you see|are there).*"), _count),
    Rule(pattern(r"what (?:is the first thing i said|did i say first|do you see first).*"), _oldest),
    Rule(pattern(r"(?:hello|hi|hey|good (?:morning|evening))\b.*"), _greet),
)
