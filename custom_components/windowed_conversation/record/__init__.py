"""The record of turns: its fields, its tables in the store's file, lists and sums of turns, and forgetting."""

from .fields import (
    EMPTY_TURN as EMPTY_TURN,
    AttemptRecord as AttemptRecord,
    SentRequest as SentRequest,
    ToolCallText as ToolCallText,
    TurnRecord as TurnRecord,
    calculate_fingerprint as calculate_fingerprint,
    encode_json as encode_json,
)
from .tables import (
    RECORD as RECORD,
    expire_turns as expire_turns,
    forget_turns as forget_turns,
    list_recorded_people as list_recorded_people,
    store_turn as store_turn,
    store_turn_cost as store_turn_cost,
)
from .turns import DailyUsage as DailyUsage, RecordedTurns as RecordedTurns, TurnListQuery as TurnListQuery
