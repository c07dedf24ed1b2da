"""What the scripted model does with words alone: it remembers, asks back, tells stories, thinks aloud, echoes.

It knows nothing but the messages of the request. What it does with tools is in `home`.
"""

from collections.abc import Iterator
from itertools import cycle, islice
import re

from .conversation import Answer, Conversation, Turn
from .faults import FAULTS
from .rules import Rule, pattern

_NAME_TOLD = re.compile(r"\b(?:my name is|i am called) (?P<name>[\w'\u2019-]+)", re.IGNORECASE)
_FACT_TOLD = re.compile(r"(?:remember|consider) that (?:the |my )?(?P<key>.+?) is (?P<value>.+?)[.!]*", re.IGNORECASE)
_SUMMARY_WANTED = re.compile(r"\[?Summarize the conversation above\b.*", re.IGNORECASE)
_SUMMARY_ASKED = re.compile(r"\[What was said before\b.*", re.IGNORECASE)
_EARLIER_SUMMARY = re.compile(r"\byour earlier summary: (?P<text>.*?)\]?\Z")
_MOST_WORDS = re.compile(r"\bat most (?P<words>\d+) words\b")
_SUMMARY_BEGINS = "You told me: "
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


def _told(turns: tuple[Turn, ...]) -> Iterator[str]:
    """Yield what the user said and what summaries say that the user said, newest first."""
    for turn in reversed(turns):
        if turn.role == "assistant" and turn.said.startswith(_SUMMARY_BEGINS):
            yield from _summarized(turn.said)
        elif turn.role == "user" and not _SUMMARY_ASKED.fullmatch(turn.said):
            yield turn.said


def _summarized(summary: str) -> Iterator[str]:
    yield from summary.removeprefix(_SUMMARY_BEGINS).rstrip(".").split("; ")


def _told_name(conversation: Conversation) -> str | None:
    found = (_NAME_TOLD.search(said) for said in _told(conversation.turns))
    return next((match["name"] for match in found if match), None)


def _greet(_match: re.Match[str], _conversation: Conversation) -> Answer:
    return Answer(text="Hello! I am a scripted model. Ask me what I can do.")


def _meet(match: re.Match[str], _conversation: Conversation) -> Answer:
    return Answer(text=f"Nice to meet you, {match['name']}.")


def _name(_match: re.Match[str], conversation: Conversation) -> Answer:
    name = _told_name(conversation)
    return Answer(text=f"Your name is {name}." if name else "I do not know your name.")


def _who(_match: re.Match[str], conversation: Conversation) -> Answer:
    name = _told_name(conversation) or conversation.newest.context.get("speaker")
    return Answer(text=f"You are {name}." if name else "I do not know who you are.")


def _keep(match: re.Match[str], _conversation: Conversation) -> Answer:
    return Answer(text=f"I will remember that the {match['key']} is {match['value']}.")


def _recall(match: re.Match[str], conversation: Conversation) -> Answer:
    key = match["key"]
    found = (_FACT_TOLD.fullmatch(said) for said in _told(conversation.turns))
    value = next((told["value"] for told in found if told and told["key"].lower() == key.lower()), None)
    return Answer(text=f"The {key} is {value}." if value else f"I do not know what the {key} is.")


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


def _summarize(match: re.Match[str], conversation: Conversation) -> Answer:
    """List the facts that were told, each once in its newest form, the name first, as far as the words go."""
    earlier = _EARLIER_SUMMARY.search(match[0])
    said = [*_told(conversation.earlier), *_summarized(earlier["text"] if earlier else "")]
    facts: dict[str, str] = {}
    for sentence in said:
        if told := _NAME_TOLD.search(sentence):
            facts.setdefault("name", f"my name is {told['name']}")
        elif told := _FACT_TOLD.fullmatch(sentence):
            facts.setdefault(told["key"].lower(), f"remember that the {told['key']} is {told['value']}")
    limit = _MOST_WORDS.search(match[0])
    text = ""
    for fact in sorted(facts.values(), key=lambda fact: not _NAME_TOLD.search(fact)):
        longer = f"{text}; {fact}" if text else f"{_SUMMARY_BEGINS}{fact}"
        if limit is None or len(longer.split()) <= int(limit["words"]):
            text = longer
    return Answer(text=f"{text}." if text else "Nothing of importance.")


def _fail(match: re.Match[str], _conversation: Conversation) -> Answer:
    if re.sub(r"\W+", "_", match["name"].lower()) in FAULTS:
        return Answer(text="This answer is about to go wrong, in the way that you have asked for just now.")
    return Answer(text=f"I can fail with: {', '.join(FAULTS)}.")


TALK: tuple[Rule, ...] = (
    Rule(_SUMMARY_WANTED, _summarize),
    Rule(pattern(r"(?:an? |the )?(?P<size>small|medium|large|big|family)\b.*"), _ordered, after=_SIZE),
    Rule(pattern(r"(?:please )?fail with (?:an? )?(?P<name>.+?)"), _fail),
    Rule(pattern(r".*\b(?:what(?: is|'s) my name|do you (?:know|remember) my name|what my name is).*"), _name),
    Rule(pattern(r".*\b(?:my name is|i am called) (?P<name>[\w'\u2019-]+).*"), _meet),
    Rule(pattern(r"who am i"), _who),
    Rule(pattern(r"what(?: is|'s| do you see) (?:in|on) the (?:picture|image|photo|document|file)s?.*"), _describe),
    Rule(_FACT_TOLD, _keep),
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

# After everything else: any other question of this form is about a fact.
RECALL = Rule(pattern(r"(?:what|who|where)(?: is|'s) (?:the |my )?(?P<key>.+?)"), _recall)
