"""The one database: connections, the writer thread, its queue, damage and upkeep. Standard library only.

Each room has its own tables in the database: `memory` those of memory and the record of turns, `window` those of
conversations.
"""

from .database import (
    VALUES as VALUES,
    Database as Database,
    cancel_deletion as cancel_deletion,
    cancel_deletion_of as cancel_deletion_of,
    delete_overdue as delete_overdue,
    delete_values as delete_values,
    owners_of_values as owners_of_values,
    read_value as read_value,
    schedule_deletion as schedule_deletion,
    write_value as write_value,
)
from .file import (
    Reason as Reason,
    Room as Room,
    StoreUnavailable as StoreUnavailable,
    check_sum as check_sum,
    delete_file as delete_file,
    delete_set_aside as delete_set_aside,
    run_script as run_script,
    set_aside as set_aside,
    size as size,
)
from .queue import Write as Write
from .writer import StoreState as StoreState, Writer as Writer
