"""Tests of the examples, which import `window` as a program without Home Assistant does."""

import sys

from custom_components.windowed_conversation.window import codecs

_PACKAGE = codecs.__name__.removesuffix("window.codecs")

# The examples get the classes of the tests: a second import of the same files would make others.
for _name in [name for name in sys.modules if name.startswith(f"{_PACKAGE}window")]:
    sys.modules[_name.removeprefix(_PACKAGE)] = sys.modules[_name]
