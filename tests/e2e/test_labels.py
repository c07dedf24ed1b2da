"""Tests that each label in italics in README and docs exists in Home Assistant's interface or in the integration's own.

They run with the end-to-end tests, because only that environment has Home Assistant's frontend.
"""

from functools import cache
import importlib.resources
import json
from pathlib import Path
from typing import Any

import pytest

from tests.documents import DOCS, italics, table_headers
from tests.repository_files import REPOSITORY, TEXTS, flat, placeholders

PAGES = [REPOSITORY / "README.md", REPOSITORY / "CHANGELOG.md", *sorted(DOCS.glob("*.md"))]

# Texts in italics that are in no translation file, and the reason for each.
EXCEPTIONS = {
    "Context length": "a setting of Ollama's app",
    "Keys and Endpoint": "a page of the Azure portal",
    "Device control": "the name of a choice of Home Assistant, which is in its code",
    "Windowed Conversation memory": "the name of our choice among the tools, which is in our code",
}


@cache
def read_labels() -> frozenset[str]:
    """Return all English texts of Home Assistant's frontend and of this integration."""
    folder = importlib.resources.files("hass_frontend") / "static" / "translations"
    files = [file for file in Path(str(folder)).rglob("en-*.json") if not file.name.startswith("en-GB")]
    assert files
    texts = [text for file in files for _, text in flat(json.loads(file.read_text(encoding="utf-8")))]
    return frozenset([*texts, *(text for _, text in flat(TEXTS))])


@cache
def read_placeholders() -> frozenset[str]:
    """Return the placeholders of the integration's texts, which are in italics in the documentation."""
    return frozenset(name for _, text in flat(TEXTS) for name in placeholders(text))


def find_unknown(texts: list[str], page: Path) -> list[Any]:
    """Return the texts that are neither labels nor placeholders, columns of the page's tables or exceptions."""
    known = read_labels() | read_placeholders() | table_headers(page) | EXCEPTIONS.keys()
    return [text for text in texts if text not in known]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
async def test_label_in_italics_exists(page: Path) -> None:
    assert find_unknown(italics(page), page) == []


async def test_exception_is_in_italics_somewhere_and_in_no_translation() -> None:
    shown = {text for page in PAGES for text in italics(page)}

    assert EXCEPTIONS.keys() - shown == set()
    assert EXCEPTIONS.keys() & read_labels() == set()


@pytest.mark.parametrize("label", ["Developer tools", "Debug logging", "Turn off the dragon"])
async def test_label_that_no_interface_has_is_found(label: str) -> None:
    assert find_unknown([label, "Settings"], DOCS / "README.md") == [label]
