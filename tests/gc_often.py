"""A pytest plugin that has garbage collected all the time, so that what depends on when it happens shows itself."""

import gc

gc.set_threshold(10)
