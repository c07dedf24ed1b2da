"""Helpers that read README, CONTRIBUTING and the pages of `docs/`: their anchors, links, tables and commands."""

from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
import re

from .repository_files import REPOSITORY

DOCS = REPOSITORY / "docs"
DOC_PAGES = [*sorted(REPOSITORY.glob("*.md")), *sorted(DOCS.rglob("*.md"))]

_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
_INLINE_LINK = re.compile(r"\]\(([^)\s]+)\)")
_LINK_DEFINITION = re.compile(r"^\[[^\]]+\]: (\S+)$", re.MULTILINE)
_CODE = re.compile(r"`([^`\n]+)`")
_ITALIC = re.compile(r"\*(?=\S)([^*]+?)(?<=\S)\*")


@cache
def prose(page: Path) -> str:
    """Return the text of a page without its code blocks."""
    return _BLOCK.sub("", page.read_text(encoding="utf-8"))


def blocks(page: Path, language: str) -> list[str]:
    """Return the code blocks of a page in this language."""
    return [code for name, code in _BLOCK.findall(page.read_text(encoding="utf-8")) if name == language]


def links(page: Path) -> list[str]:
    """Return the targets of the links and images on a page."""
    text = _CODE.sub("", prose(page))
    return _INLINE_LINK.findall(text) + _LINK_DEFINITION.findall(text)


def slug(heading: str) -> str:
    """Return the anchor that GitHub generates for a heading: lower case, no punctuation, a hyphen for each space."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    return re.sub(r"[^\w\- ]", "", text.strip().lower()).replace(" ", "-")


@cache
def anchors(page: Path) -> frozenset[str]:
    """Return the anchors of a page. GitHub appends a number to repeated anchors, starting with the second one."""
    found = Counter(slug(heading) for heading in _HEADING.findall(prose(page)))
    again = {f"{name}-{number}" for name, count in found.items() for number in range(1, count)}
    return frozenset(found) | again


def section(page: Path, heading: str) -> str:
    """Return the text below a heading, up to the next heading of any level."""
    return re.split(r"^#", prose(page).partition(f"# {heading}\n")[2], maxsplit=1, flags=re.MULTILINE)[0]


def table(page: Path, heading: str) -> list[list[str]]:
    """Return the rows of the table below a heading, without its header."""
    lines = [line for line in section(page, heading).splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def column(page: Path, heading: str) -> list[str]:
    """Return the first column of the table below a heading, without backticks."""
    return [row[0].strip("`") for row in table(page, heading)]


def join_lines(code: str) -> list[str]:
    """Return the lines of a shell's code, with those that a backslash continues as one."""
    return re.sub(r"\\\n *", "", code).splitlines()


def commands() -> Iterator[str]:
    """Yield each command of this repository that a page shows, in a code block or inline."""
    for page in DOC_PAGES:
        shown = [line for code in blocks(page, "sh") for line in join_lines(code)] + _CODE.findall(prose(page))
        yield from (each for each in shown if each.startswith(("scripts/", ".venv/")))


def italics(page: Path) -> list[str]:
    """Return the texts in italics on a page, which are mostly labels of the interface."""
    text = _CODE.sub("", prose(page)).replace("**", "\0")
    return list(dict.fromkeys(" ".join(found.split()) for found in _ITALIC.findall(text)))


def table_headers(page: Path) -> set[str]:
    """Return the names of the columns of all tables on a page."""
    headers = re.findall(r"^\|(.+)\|\n\|[-| ]+\|$", prose(page), re.MULTILINE)
    return {cell.strip() for header in headers for cell in header.split("|")}


def headed_paragraphs(text: str) -> list[tuple[str, str]]:
    """Return each paragraph of a text with the heading above it, with all white space as single spaces."""
    heading, found = "", []
    for paragraph in re.split(r"\n\s*\n", text):
        if title := _HEADING.match(paragraph):
            heading = title[1]
        found.append((heading, " ".join(paragraph.split())))
    return found
