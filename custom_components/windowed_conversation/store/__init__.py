"""The one database: connections, the writer thread, its queue, damage and upkeep. Standard library only.

Each room has its own tables in the database: `memory/` those of memory, `record/` those of the record of turns,
`window/` those of conversations.
"""

from .database import (
    VALUE_TABLE as VALUE_TABLE,
    Database as Database,
    delete_overdue as delete_overdue,
    delete_values as delete_values,
    list_value_owners as list_value_owners,
    read_value as read_value,
    schedule_deletion as schedule_deletion,
    write_value as write_value,
)
from .file import (
    Schema as Schema,
    StoreUnavailable as StoreUnavailable,
    UnavailableReason as UnavailableReason,
    checksum_sql as checksum_sql,
    delete_damaged_file as delete_damaged_file,
    delete_file as delete_file,
    do_nothing as do_nothing,
    get_damaged_path as get_damaged_path,
    get_disk_bytes as get_disk_bytes,
    keep_damaged_file as keep_damaged_file,
    run_script as run_script,
)
from .json_types import has_json_type as has_json_type
from .queue import WriteJob as WriteJob
from .writer import StoreState as StoreState, StoreWriter as StoreWriter
