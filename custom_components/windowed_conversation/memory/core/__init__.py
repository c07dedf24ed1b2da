"""Past turns, facts and summaries in an SQLite file, and their recall. Needs a stemmer, but not Home Assistant."""

from .erasure import (
    Erasure as Erasure,
    ExchangeOwner as ExchangeOwner,
    ExchangeText as ExchangeText,
    has_time_between as has_time_between,
    mark_unerased as mark_unerased,
)
from .index import MemoryUnavailable as MemoryUnavailable
from .memory import Memory as Memory, MemoryAccess as MemoryAccess
from .records import (
    KINDS as KINDS,
    BadLine as BadLine,
    Fact as Fact,
    FactStatement as FactStatement,
    LoadCounts as LoadCounts,
    LostRows as LostRows,
    MemoryFull as MemoryFull,
    MemoryKind as MemoryKind,
    PastSummary as PastSummary,
    PastTurn as PastTurn,
    RecallHit as RecallHit,
    Replacement as Replacement,
    Summary as Summary,
    Tombstone as Tombstone,
)
from .search import RecallQuery as RecallQuery
from .suggestions import (
    add_suggestion as add_suggestion,
    confirm_suggestion as confirm_suggestion,
    delete_suggestion as delete_suggestion,
    take_ended_turns as take_ended_turns,
    take_talk_back as take_talk_back,
)
from .words import (
    MAX_FACT_CHARS as MAX_FACT_CHARS,
    MAX_ID_BYTES as MAX_ID_BYTES,
    MAX_QUOTE_CHARS as MAX_QUOTE_CHARS,
    Words as Words,
    base_language as base_language,
    clean_fact as clean_fact,
    clean_text as clean_text,
    get_content_words as get_content_words,
    get_function_words as get_function_words,
    join_lines as join_lines,
    remove_diacritics as remove_diacritics,
    split_words as split_words,
)
