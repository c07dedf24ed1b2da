"""The scripted model's answers to greetings, thanks, and statements, in English and German."""

from calendar import month_name
import re

from .conversation import Answer, Conversation
from .sentences import Sentence

_GERMAN_MONTHS = {
    "January": "Januar",
    "February": "Februar",
    "March": "März",
    "May": "Mai",
    "June": "Juni",
    "July": "Juli",
    "October": "Oktober",
    "December": "Dezember",
}
_GERMAN_DAYS = {
    "Monday": "Montag",
    "Tuesday": "Dienstag",
    "Wednesday": "Mittwoch",
    "Thursday": "Donnerstag",
    "Friday": "Freitag",
    "Saturday": "Samstag",
    "Sunday": "Sonntag",
}
_TIME_PATTERN = re.compile(r"(?P<day>\w+) (?P<year>\d{4})-(?P<month>\d\d)-(?P<date>\d\d) (?P<time>\d\d?:\d\d)")
_DAY_QUESTION = re.compile(r"\b(?:what|which|welche[rn]?|was für ein) (?:day|date|tag|datum)\b|\bthe date\b")
_TIME_QUESTION = re.compile(r"\bwhat time is it\b|\bwie (?:spät|viel uhr)\b|\bhow late is it\b")

# A pattern for the whole sentence, and the two answers.
_REPLIES: tuple[tuple[re.Pattern[str], str, str], ...] = tuple(
    (re.compile(rf"(?:{pattern})[.!?]*"), english, german)
    for pattern, english, german in (
        (r"(?:guten (?:morgen|tag|abend)|moin|hallo|morning|evening)\b.*", "Hello!", "Hallo! Was kann ich tun?"),
        (r"(?:good night|gute nacht|sleep well|schlaf gut)", "Good night!", "Gute Nacht!"),
        (r"(?:thank you|thanks|cheers|danke|vielen dank|dankeschön)\b.*", "You are welcome.", "Gern geschehen."),
        (r"(?:well done|good job|gut gemacht|super|great|perfect|toll)", "Thank you.", "Danke."),
        (r"(?:i(?:'m| am)|we(?:'re| are)) (?:home|back).*|(?:ich bin|wir sind) (?:wieder )?(?:da|zu ?hause).*",
         "Welcome home!", "Willkommen zu Hause!"),
        (r"(?:bye|goodbye|see you|tschüss|bis später|auf wiedersehen)\b.*", "See you later.", "Bis später."),
        (r"how are you.*|wie geht(?: e|')s.*", "Fine, all my rules match. And you?", "Gut, alle meine Regeln passen."),
        (r".*\b(?:joke|witz)\b.*",
         "Why did the light bulb fail its exam? It was not bright enough.",
         "Warum ist die Glühbirne durchgefallen? Sie war nicht hell genug."),
        (r"(?:yes|yeah|yep|sure|do it|ja|klar|genau|mach das)", "I have asked nothing that is still open.",
         "Es ist keine Frage von mir offen."),
        (r"(?:no|nope|never ?mind|nein|nö|vergiss es|schon gut)", "All right.", "In Ordnung."),
        (r"(?:stop|be quiet|quiet|halt|ruhe|stopp)", "I am quiet.", "Ich bin still."),
    )
)  # fmt: skip


def answer_small_talk(sentence: Sentence, conversation: Conversation) -> Answer | None:
    """Return the answer to a greeting and the like, or to a question about the day; None for anything else."""
    if _DAY_QUESTION.search(sentence.text) or _TIME_QUESTION.search(sentence.text):
        return _answer_time(sentence, conversation)
    for pattern, english, german in _REPLIES:
        if pattern.fullmatch(sentence.text):
            return Answer(text=german if _is_german_reply(sentence) else english)
    return None


def acknowledge(sentence: Sentence) -> Answer | None:
    """Return the answer to a statement of people about themselves, or None for anything else."""
    if not sentence.is_statement:
        return None
    english = 'I see. Say "remember that", and it is known tomorrow, too.'
    german = "Aha. Sag „merk dir“ davor, dann ist es auch morgen noch bekannt."
    return Answer(text=german if sentence.is_german else english)


def _is_german_reply(sentence: Sentence) -> bool:
    return sentence.is_german or bool({"tschüss", "moin", "witz", "klar", "stopp", "ruhe"} & set(sentence.words))


def _answer_time(sentence: Sentence, conversation: Conversation) -> Answer | None:
    known = _TIME_PATTERN.match(conversation.newest_user_turn.context.get("time", ""))
    if known is None:
        return None
    month = month_name[int(known["month"])]
    if _TIME_QUESTION.search(sentence.text):
        return Answer(text=f"Es ist {known['time']} Uhr." if sentence.is_german else f"It is {known['time']}.")
    if sentence.is_german:
        day = _GERMAN_DAYS.get(known["day"], known["day"])
        return Answer(text=f"Heute ist {day}, der {int(known['date'])}. {_GERMAN_MONTHS.get(month, month)}.")
    return Answer(text=f"Today is {known['day']}, {month} {int(known['date'])}.")
