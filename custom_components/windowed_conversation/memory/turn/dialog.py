"""The dialog of memory in a conversation: its last answer, and its question that waits for a yes."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import partial
import time

from ..core import Memory
from .evidence import asks_about
from .remember_requests import MAX_FACTS_NAMED, MemoryReply, ReplyKey
from .speaker import Speaker

# How long a question of memory waits for the reply, in seconds: as long as Home Assistant's chat sessions last.
_REPLY_TIMEOUT = 300.0


@dataclass(frozen=True, slots=True)
class LastAnswer:
    """The last answer of memory in a conversation, and the person and device that it was given to."""

    # Called if they agree.
    on_yes: Callable[[Memory], MemoryReply] | None
    # The ids of the facts in the answer.
    named_fact_ids: tuple[int, ...]
    # Whether it was about forgetting.
    is_forgetting: bool
    listener: tuple[str | None, str | None]
    # The facts that a model was told to ask about. A yes counts only if its answer did.
    asked_texts: tuple[str, ...] = ()
    answered_at: float = field(default_factory=time.monotonic)
    # The answer as it was spoken, if it asked whether to forget something.
    question: str = ""
    # Whether the reply was neither a yes nor a no. A later one counts only if the question was heard once more.
    is_unclear: bool = False


_NO_ANSWER = LastAnswer(None, (), is_forgetting=False, listener=(None, None))


@dataclass(slots=True)
class MemoryDialog:
    """The dialog of memory in one conversation, in the turn of a speaker.

    `answers` are the last answers of memory in all conversations, by their keys. `last_answer` has no facts and no
    question before it is taken.
    """

    answers: dict[str, LastAnswer]
    conversation_key: str
    speaker: Speaker
    last_answer: LastAnswer = _NO_ANSWER
    # Whether a model has forgotten something in this turn, or is about to.
    has_forgotten: bool = False
    # Whether the speaker wants nothing of this conversation to be kept.
    is_private: bool = False
    # The question that the input leaves open.
    open_question: str = ""

    def take_last_answer(self, heard: str = "") -> None:
        """Take the last answer of the conversation if it was given to this speaker, and drop all expired answers.

        The next turn finds it only if its question is asked again: any reply other than a yes changes nothing. `heard`
        is the answer that the speaker heard last: the question of a model is none if its answer asks about something
        else, and a question that is asked again is the end of the answer.
        """
        oldest = time.monotonic() - _REPLY_TIMEOUT
        for key in [key for key, answer in self.answers.items() if answer.answered_at < oldest]:
            del self.answers[key]
        last = self.answers.pop(self.conversation_key, None)
        if last is not None and last.listener == (self.speaker.person, self.speaker.device):
            is_asked = asks_about(last.asked_texts, heard, self.speaker)
            is_asked &= not last.is_unclear or heard.rstrip().endswith(last.question)
            self.last_answer = last if is_asked else replace(last, on_yes=None)

    def store_answer(self, reply: MemoryReply, *, forgets: bool, speech: str = "") -> None:
        """Store an answer for the conversation's next input, with its text if it is spoken as it is."""
        listener = (self.speaker.person, self.speaker.device)
        question = speech if forgets and reply.on_yes is not None else ""
        answer = LastAnswer(reply.on_yes, reply.named_fact_ids, forgets, listener, question=question)
        self.answers[self.conversation_key] = answer

    def leave_question_open(self) -> None:
        """Keep the question that the input answers with neither yes nor no, unless that was so before."""
        last = self.last_answer
        if last.question and not last.is_unclear:
            self.open_question = last.question
            self.answers[self.conversation_key] = replace(last, is_unclear=True, answered_at=time.monotonic())

    def store_tool_reply(self, reply: MemoryReply, asked_texts: tuple[str, ...] = ()) -> tuple[str, ...]:
        """Store the reply that a model got, and return the texts that it has to ask the user about, at most three.

        A question that it got before in this turn is asked together with this one.
        """
        before = self.answers.get(self.conversation_key)
        if before is not None and before.on_yes is not None and not before.question:
            if reply.on_yes is None or len(before.asked_texts) + len(asked_texts) > MAX_FACTS_NAMED:
                return before.asked_texts
            asked_texts = (*before.asked_texts, *asked_texts)
            reply = replace(reply, on_yes=partial(_run_each, works=(before.on_yes, reply.on_yes)))
        self.store_answer(reply, forgets=bool(asked_texts) or reply.phrase is ReplyKey.SEVERAL_FOUND)
        self.answers[self.conversation_key] = replace(self.answers[self.conversation_key], asked_texts=asked_texts)
        return asked_texts


def _run_each(memory: Memory, works: Iterable[Callable[[Memory], MemoryReply]]) -> MemoryReply:
    first, *others = [work(memory) for work in works]
    return replace(first, others=(*first.others, *others))
