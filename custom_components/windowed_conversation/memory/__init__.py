"""The record of what was said, and what is recalled from it. SQLite and a stemmer, and no Home Assistant."""

from .errors import BadLine, MemoryFull, MemoryUnavailable, Reason
from .listing import Listing
from .memory import Memory
from .records import KINDS, Episode, Fact, Figures, Forgotten, Kind, Loaded, PastTurn, Recalled, Summary

__all__ = [
    "KINDS",
    "BadLine",
    "Episode",
    "Fact",
    "Figures",
    "Forgotten",
    "Kind",
    "Listing",
    "Loaded",
    "Memory",
    "MemoryFull",
    "MemoryUnavailable",
    "PastTurn",
    "Reason",
    "Recalled",
    "Summary",
]
