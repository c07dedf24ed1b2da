"""The store that memory has its tables in. It is found also where this package is imported by itself."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING or "." in __package__:
    from .. import store
else:
    store = import_module("store")

MemoryUnavailable = store.StoreUnavailable

__all__ = ["MemoryUnavailable", "store"]
