"""A pytest plugin that makes garbage collection frequent, to reveal code that depends on its timing."""

import gc

gc.set_threshold(10)
