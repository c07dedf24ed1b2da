"""Past turns, facts and episodes in an SQLite file, and their recall. Needs a stemmer, but not Home Assistant."""

from .erasure import (
    Erasure as Erasure,
    ExchangeOwner as ExchangeOwner,
    ExchangeText as ExchangeText,
    any_between as any_between,
)
from .index import MemoryUnavailable as MemoryUnavailable
from .memory import Memory as Memory
from .records import (
    KINDS as KINDS,
    BadLine as BadLine,
    CallRecord as CallRecord,
    End as End,
    Episode as Episode,
    Fact as Fact,
    FailureRecord as FailureRecord,
    Forgotten as Forgotten,
    Kind as Kind,
    Loaded as Loaded,
    MemoryFull as MemoryFull,
    PastTurn as PastTurn,
    Recalled as Recalled,
    RequestRecord as RequestRecord,
    Sent as Sent,
    Summary as Summary,
    Tokens as Tokens,
    Tombstone as Tombstone,
    TurnCost as TurnCost,
    TurnListing as TurnListing,
    TurnRecord as TurnRecord,
    TurnWords as TurnWords,
    fingerprint as fingerprint,
)
from .search import Listing as Listing, RecallQuery as RecallQuery
from .words import (
    FACT_LENGTH as FACT_LENGTH,
    NAME_LENGTH as NAME_LENGTH,
    QUOTE_LENGTH as QUOTE_LENGTH,
    Words as Words,
    fact_text as fact_text,
    one_line as one_line,
    plain_word as plain_word,
    split_words as split_words,
    spoken as spoken,
    words_for_oneself as words_for_oneself,
)
