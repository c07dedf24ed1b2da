"""Past turns, facts and episodes in an SQLite file, and recall from it. Needs a stemmer, but no Home Assistant."""

from .errors import BadLine, MemoryFull
from .forget import Repetitions
from .memory import Memory
from .records import KINDS, Episode, Fact, Figures, Forgotten, Kind, Loaded, PastTurn, Recalled, Summary, Tombstone
from .search import Listing
from .selection import Companion, Selection
from .storage import MemoryUnavailable
from .texts import FACT_LENGTH, NAME_LENGTH, QUOTE_LENGTH, fact_text, one_line
from .turn_record import (
    CallRecord,
    End,
    FailureRecord,
    LateRecord,
    RequestRecord,
    Sent,
    Tokens,
    TurnCost,
    TurnListing,
    TurnRecord,
    TurnWords,
    fingerprint,
)
from .words import Words, plain_word, split_words, spoken, words_for_oneself

__all__ = [
    "FACT_LENGTH",
    "KINDS",
    "NAME_LENGTH",
    "QUOTE_LENGTH",
    "BadLine",
    "CallRecord",
    "Companion",
    "End",
    "Episode",
    "Fact",
    "FailureRecord",
    "Figures",
    "Forgotten",
    "Kind",
    "LateRecord",
    "Listing",
    "Loaded",
    "Memory",
    "MemoryFull",
    "MemoryUnavailable",
    "PastTurn",
    "Recalled",
    "Repetitions",
    "RequestRecord",
    "Selection",
    "Sent",
    "Summary",
    "Tokens",
    "Tombstone",
    "TurnCost",
    "TurnListing",
    "TurnRecord",
    "TurnWords",
    "Words",
    "fact_text",
    "fingerprint",
    "one_line",
    "plain_word",
    "split_words",
    "spoken",
    "words_for_oneself",
]
