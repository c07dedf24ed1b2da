"""The form of the scripted model's rules: a pattern for the newest user message, and a plan that returns the answer.

The rules themselves are in modules such as `talk` (text only) and `home` (tools of Home Assistant).
"""

from collections.abc import Callable
from dataclasses import dataclass
import re

from .conversation import Answer, Conversation

type AnswerPlan = Callable[[re.Match[str], Conversation], Answer]


@dataclass(frozen=True, slots=True)
class Rule:
    """Applies if the complete message matches, and the last assistant text ends with `after_text` (None: always).

    The plan is called again after each round of tool results, which it finds in `Conversation.tool_rounds`.
    """

    pattern: re.Pattern[str]
    build_answer: AnswerPlan
    after_text: str | None = None

    def match_text(self, said: str, conversation: Conversation) -> re.Match[str] | None:
        """Return the match if the rule applies, or else None."""
        if self.after_text is not None and not conversation.last_assistant_text.endswith(self.after_text):
            return None
        return self.pattern.fullmatch(said)


def compile_pattern(text: str) -> re.Pattern[str]:
    """Compile a pattern for a complete sentence, in any case and with any full stop, question or exclamation marks."""
    return re.compile(rf"(?:{text})\s*[.?!]*", re.IGNORECASE)
