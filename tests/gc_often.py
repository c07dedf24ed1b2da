"""A pytest plugin that has garbage collected all the time, so that dependence on its time shows itself."""

import gc

gc.set_threshold(10)
