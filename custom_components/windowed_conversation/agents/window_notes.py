"""The notes of an agent on its windows, which outlive a turn and a reload, but not a restart."""

from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

from ..home.core.home import NO_STATES_TEXT, StatesText
from ..turn.plain_exchanges import PlainTextExchanges
from ..window import Window


@dataclass(slots=True)
class WindowNotes:
    """Notes of an agent on one of its windows."""

    # The states of the home that its last turn listed.
    listed_states: StatesText = NO_STATES_TEXT
    # See `Question`.
    plain_exchanges: dict[tuple[str, str], PlainTextExchanges] = field(default_factory=dict)
    # The number of trims in a row that have left it full.
    futile_trims: int = 0


type NotesByWindow = WeakKeyDictionary[Window, WindowNotes]
