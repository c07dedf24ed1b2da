"""The form of the scripted model's rules: a pattern on the newest user message, and a plan.

The rules themselves are in `talk` (words only) and `home` (tools of Home Assistant).
"""

from collections.abc import Callable
from dataclasses import dataclass
import re

from .conversation import Answer, Conversation

type Plan = Callable[[re.Match[str], Conversation], Answer]


@dataclass(frozen=True, slots=True)
class Rule:
    """Applies where the whole message matches, and the assistant's last words end with `after` (None: always).

    A plan is asked again after each round of tool results, and goes by `Conversation.rounds`.
    """

    pattern: re.Pattern[str]
    plan: Plan
    after: str | None = None

    def match(self, said: str, conversation: Conversation) -> re.Match[str] | None:
        """Return the match where the rule applies."""
        if self.after is not None and not conversation.question.endswith(self.after):
            return None
        return self.pattern.fullmatch(said)


def pattern(text: str) -> re.Pattern[str]:
    """Compile a pattern for a whole sentence: any case, any full stop, question or exclamation mark at its end."""
    return re.compile(rf"(?:{text})\s*[.?!]*", re.IGNORECASE)
