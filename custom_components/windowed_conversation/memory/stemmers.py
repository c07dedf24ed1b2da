"""The Snowball stemmers for a home's languages."""

from collections.abc import Callable
import importlib
from importlib.metadata import version
from importlib.util import find_spec
import sys
from types import ModuleType

type Stem = Callable[[str], str]

_PACKAGE = "snowballstemmer"
_ALONE = f"{__name__}.{_PACKAGE}"

_ALGORITHMS = {
    "ar": "arabic",
    "ca": "catalan",
    "cs": "czech",
    "da": "danish",
    "de": "german",
    "el": "greek",
    "en": "english",
    "eo": "esperanto",
    "es": "spanish",
    "et": "estonian",
    "eu": "basque",
    "fa": "persian",
    "fi": "finnish",
    "fr": "french",
    "ga": "irish",
    "hi": "hindi",
    "hu": "hungarian",
    "hy": "armenian",
    "id": "indonesian",
    "it": "italian",
    "lt": "lithuanian",
    "nb": "norwegian",
    "ne": "nepali",
    "nl": "dutch",
    "nn": "norwegian",
    "no": "norwegian",
    "pl": "polish",
    "pt": "portuguese",
    "ro": "romanian",
    "ru": "russian",
    "sr": "serbian",
    "sv": "swedish",
    "ta": "tamil",
    "tr": "turkish",
}


def stemmer_version() -> str:
    """Return a version that changes whenever the stems may change, for the same languages."""
    return f"{_PACKAGE} {version(_PACKAGE)}"


def stemmers(languages: tuple[str, ...]) -> tuple[Stem, ...]:
    """Return the stemmers of the languages that have one."""
    names = dict.fromkeys(_ALGORITHMS[language] for language in languages if language in _ALGORITHMS)
    return tuple(_stemmer(name) for name in names)


def _stemmer(name: str) -> Stem:
    module = importlib.import_module(f"{_package()}.{name}_stemmer")
    stem: Stem = getattr(module, f"{name.capitalize()}Stemmer")().stemWord
    return stem


def _package() -> str:
    """Return a package through which single stemmers can be imported; importing all of them takes 10 MB."""
    if _ALONE not in sys.modules:
        spec = find_spec(_PACKAGE)
        if spec is None or spec.submodule_search_locations is None:
            raise ModuleNotFoundError(f"No module named {_PACKAGE!r}", name=_PACKAGE)
        package = ModuleType(_ALONE)
        package.__path__ = spec.submodule_search_locations
        sys.modules[_ALONE] = package
    return _ALONE
