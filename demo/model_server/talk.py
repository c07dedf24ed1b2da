"""The scripted model's skills that need no tools: it asks questions, tells stories, thinks aloud and repeats text.

`facts` has its knowledge; `home`, `orders` and `memory` have its use of tools.
"""

from itertools import cycle
import re

from .conversation import Answer, Conversation
from .faults import FAULTS
from .rules import Rule, compile_pattern

_SIZE_QUESTION = "Which size would you like?"
_DEFAULT_STORY_WORDS = 300
_STORY_SENTENCES = (
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


def _answer_time(_match: re.Match[str], conversation: Conversation) -> Answer:
    time = conversation.newest_user_turn.context.get("time")
    return Answer(text=f"It is {time}." if time else "I was not told the time.")


def _answer_room(_match: re.Match[str], conversation: Conversation) -> Answer:
    context = conversation.newest_user_turn.context
    room = context.get("area") or context.get("room")
    return Answer(text=f"You are in the {room}." if room else "I was not told which room you are in.")


def _ask_pizza_size(_match: re.Match[str], _conversation: Conversation) -> Answer:
    return Answer(text=f"Gladly. {_SIZE_QUESTION}")


def _confirm_order(match: re.Match[str], _conversation: Conversation) -> Answer:
    return Answer(text=f"Your {match['size'].lower()} pizza is on its way.")


def _tell_story(match: re.Match[str], _conversation: Conversation) -> Answer:
    """Tell as many whole sentences as the number of words allows, and at least one."""
    topic, limit = match["topic"] or "a lamp that never went out", int(match["words"] or _DEFAULT_STORY_WORDS)
    sentences = (sentence.format(topic=topic) for sentence in cycle(_STORY_SENTENCES))
    told = next(sentences)
    for sentence in sentences:
        longer = f"{told} {sentence}"
        if len(longer.split()) > limit:
            break
        told = longer
    return Answer(text=told)


def _format_thoughts(topic: str) -> str:
    return (
        f"The user wants me to think about {topic}. First I ask myself what I know about {topic}: very little. "
        "Then I ask myself what I could say all the same. A short answer will do."
    )


def _think_about_topic(match: re.Match[str], _conversation: Conversation) -> Answer:
    topic = match["topic"]
    return Answer(reasoning=_format_thoughts(topic), text=f"I have thought about {topic}, and there is much to like.")


def _think_in_text(match: re.Match[str], _conversation: Conversation) -> Answer:
    topic = match["topic"]
    return Answer(text=f"<think>{_format_thoughts(topic)}</think>\n\nI have thought about {topic} out loud.")


def _repeat_message(_match: re.Match[str], conversation: Conversation) -> Answer:
    return Answer(text=f"You wrote: {conversation.newest_user_turn.text}")


def _describe_attachments(_match: re.Match[str], conversation: Conversation) -> Answer:
    sent = [f"{each.media_type} of {each.byte_count} bytes" for each in conversation.newest_user_turn.attachments]
    return Answer(text=f"I was sent {' and '.join(sent)}." if sent else "I was sent no picture.")


def _count_messages(_match: re.Match[str], conversation: Conversation) -> Answer:
    yours = sum(turn.role == "user" for turn in conversation.turns)
    return Answer(text=f"I was sent {len(conversation.turns)} messages, {yours} of them yours.")


def _repeat_oldest(_match: re.Match[str], conversation: Conversation) -> Answer:
    oldest = next(turn.plain_text for turn in conversation.turns if turn.role == "user")
    return Answer(text=f"The oldest thing I can see is: {oldest}")


def _repeat_newest(_match: re.Match[str], conversation: Conversation) -> Answer:
    said = next((turn.plain_text for turn in reversed(conversation.earlier_turns) if turn.role == "user"), "")
    if not said:
        return Answer(text="You have only just begun to talk to me.")
    answer = conversation.last_assistant_text.rstrip(" .")
    return Answer(text=f'You said "{said}", and the answer was "{answer}".' if answer else f'You said "{said}".')


def _announce_failure(match: re.Match[str], _conversation: Conversation) -> Answer:
    if re.sub(r"\W+", "_", match["name"].lower()) in FAULTS:
        return Answer(text="This answer is about to go wrong, in the way that you have asked for just now.")
    return Answer(text=f"I can fail with: {', '.join(FAULTS)}.")


TALK_RULES: tuple[Rule, ...] = (
    Rule(
        compile_pattern(r"(?:an? |the )?(?P<size>small|medium|large|big|family)\b.*"),
        _confirm_order,
        after_text=_SIZE_QUESTION,
    ),
    Rule(compile_pattern(r"(?:please )?fail with (?:an? )?(?P<name>.+?)"), _announce_failure),
    Rule(
        compile_pattern(r"what(?: is|'s| do you see) (?:in|on) the (?:picture|image|photo|document|file)s?.*"),
        _describe_attachments,
    ),
    Rule(compile_pattern(r"(?:tell me )?what time (?:is it|it is).*"), _answer_time),
    Rule(compile_pattern(r"(?:which|what) room am i in.*|where am i.*"), _answer_room),
    Rule(compile_pattern(r"(?:i (?:want|would like) to )?order (?:a )?pizza.*"), _ask_pizza_size),
    Rule(
        compile_pattern(r"tell me a (?:long )?story(?: about (?P<topic>.+?))?(?: in (?P<words>\d{1,5}) words)?"),
        _tell_story,
    ),
    Rule(compile_pattern(r"think (?:out loud|in tags) about (?P<topic>.+?)"), _think_in_text),
    Rule(compile_pattern(r"think about (?P<topic>.+?)"), _think_about_topic),
    Rule(compile_pattern(r"repeat my message.*"), _repeat_message),
    Rule(compile_pattern(r"how many messages (?:do you see|can you see|are there).*"), _count_messages),
    Rule(compile_pattern(r"what (?:is the first thing i said|did i say first|do you see first).*"), _repeat_oldest),
    Rule(compile_pattern(r"what did i (?:just (?:do|say)|(?:do|say) (?:just now|last))"), _repeat_newest),
    Rule(compile_pattern(r"(?:hello|hi|hey|good (?:morning|evening))\b.*"), _greet),
)
