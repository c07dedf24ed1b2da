"""The one database: connections, the thread that writes, its queue, damage and upkeep. Standard library only.

Each room has its tables in it: memory and the record of turns in `memory`, conversations in `window`.
"""

from .database import Database
from .errors import Reason, StoreUnavailable
from .file import delete_file, delete_set_aside, set_aside, size
from .left import come_back, delete_overdue, keep_left, leave
from .queue import Write
from .room import Room, check_sum, run_script
from .values import VALUES, delete_values, owners_of_values, read_value, write_value
from .writer import State, Writer

__all__ = [
    "VALUES",
    "Database",
    "Reason",
    "Room",
    "State",
    "StoreUnavailable",
    "Write",
    "Writer",
    "check_sum",
    "come_back",
    "delete_file",
    "delete_overdue",
    "delete_set_aside",
    "delete_values",
    "keep_left",
    "leave",
    "owners_of_values",
    "read_value",
    "run_script",
    "set_aside",
    "size",
    "write_value",
]
