"""The scripted model's reading of everyday sentences: by the states, tools and quotes of the request, in two languages.

`sentences` reads the sentence, `household` the home; the other modules answer.
"""

from .conversation import Answer, Conversation
from .everyday_commands import carry_out
from .everyday_questions import answer_question
from .everyday_recall import answer_from_quotes, look_back
from .household import parse_household
from .sentences import Sentence
from .small_talk import acknowledge, answer_small_talk

_FOLLOW_UP_CHARS = 60


def answer_everyday(said: str, conversation: Conversation) -> Answer | None:
    """Return the answer to an everyday sentence, or None if it is not understood."""
    sentence = Sentence(_complete_sentence(said, conversation))
    household = parse_household(conversation)
    return (
        answer_small_talk(sentence, conversation)
        or look_back(sentence, household, conversation)
        or carry_out(sentence, household, conversation)
        or answer_question(sentence, household, conversation)
    )


def names_known_thing(said: str, conversation: Conversation) -> bool:
    """Return whether the sentence has the first name of an entity of the overview, or there is no overview."""
    things = parse_household(conversation).things
    return not things or any(Sentence(said).names(thing.name) for thing in things)


def recall_everyday(said: str, conversation: Conversation) -> Answer | None:
    """Return the recalled answer to a question, or the answer to a statement, or None."""
    sentence = Sentence(said)
    return answer_from_quotes(sentence, conversation) or acknowledge(sentence)


def _complete_sentence(said: str, conversation: Conversation) -> str:
    """Return the command with the room, if this is the answer to the question for it."""
    if not conversation.last_assistant_text.endswith(("In which room?", "In welchem Raum?")):
        return said
    asked = next((turn.plain_text for turn in reversed(conversation.earlier_turns) if turn.role == "user"), "")
    return f"{asked.rstrip('.!? ')} {said}" if len(said) <= _FOLLOW_UP_CHARS else said
