"""Past turns, facts and episodes in an SQLite file, and recall from it. Needs a stemmer, but no Home Assistant."""

from .errors import BadLine, MemoryFull, MemoryUnavailable, Reason
from .file import delete_file, forgotten
from .forget import Repetitions
from .memory import Memory
from .records import KINDS, Episode, Fact, Figures, Forgotten, Kind, Loaded, PastTurn, Recalled, Summary
from .search import Listing
from .texts import FACT_LENGTH, NAME_LENGTH, QUOTE_LENGTH, fact_text, one_line
from .tombstones import Tombstone, read_tombstones
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
from .writer import State, Writer

__all__ = [
    "FACT_LENGTH",
    "KINDS",
    "NAME_LENGTH",
    "QUOTE_LENGTH",
    "BadLine",
    "CallRecord",
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
    "Reason",
    "Recalled",
    "Repetitions",
    "RequestRecord",
    "Sent",
    "State",
    "Summary",
    "Tokens",
    "Tombstone",
    "TurnCost",
    "TurnListing",
    "TurnRecord",
    "TurnWords",
    "Words",
    "Writer",
    "delete_file",
    "fact_text",
    "fingerprint",
    "forgotten",
    "one_line",
    "plain_word",
    "read_tombstones",
    "split_words",
    "spoken",
    "words_for_oneself",
]
