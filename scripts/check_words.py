"""List names and phrases that this repository replaces by better ones; the table is in CONTRIBUTING.md.

    .venv/test/bin/python scripts/check_words.py      ends with 1 if there are any

Names are those of classes, functions, parameters, fields and constants, found by syntax tree. Phrases are searched for
in all texts: code, documentation and translations. Each public class or function of the integration needs a unique
name.
"""

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from pathlib import Path
import re
import sys
from typing import NamedTuple

REPOSITORY = Path(__file__).resolve().parents[1]
FOLDERS = ("custom_components", "tests", "demo", "benchmarks", "examples", "scripts", "docs")
TEXT_SUFFIXES = {".py", ".md", ".json", ".yaml", ".toml"}


class ReplacedWords(NamedTuple):
    """A row of the table: the preferred word, and the parts of names that it replaces.

    A part is one or more complete words of a name, in any case: "left_out" is part of "LeftOut" and "_is_left_out". The
    row applies to files whose path contains `path_part`.
    """

    preferred_word: str
    replaced_words: tuple[str, ...]
    path_part: str = ""


INTEGRATION_PATH = "custom_components/"
REPLACEMENTS = (
    ReplacedWords(
        "evict", ("let_go", "lets_go", "give_up", "gives_up", "given_up", "leave_behind", "left_behind", "let_out")
    ),
    ReplacedWords("evict", ("gone", "go", "goes", "went"), f"{INTEGRATION_PATH}windowed_conversation/window/"),
    ReplacedWords(
        "evict", ("drop_exchange", "drop_exchanges", "dropped_exchange", "dropped_exchanges", "dropped_messages")
    ),
    ReplacedWords("exclude", ("leave_out", "leaves_out", "left_out")),
    ReplacedWords("first token", ("first_word", "first_words")),
    ReplacedWords("idle timeout", ("silence", "longest_silence")),
    ReplacedWords(
        "max answer tokens", ("kept_free", "keep_free", "keeps_free", "reply_tokens", "reply_limit", "reply_reserve")
    ),
    ReplacedWords("context editing", ("compact", "compacts", "compacted", "compaction"), "providers/anthropic/"),
    ReplacedWords("compaction", ("context_editing", "edit_context"), "providers/openai/"),
    ReplacedWords("usage, billed", ("reported", "reported_usage", "usage_told", "told_usage"), INTEGRATION_PATH),
    ReplacedWords(
        "fallback agent", ("other_agent", "other_agents", "next_agent", "next_agents", "asked_next", "ask_elsewhere")
    ),
    ReplacedWords("issue", ("report", "reports", "warning", "warnings"), INTEGRATION_PATH),
    ReplacedWords("after the turn", ("put_off", "puts_off", "news")),
    ReplacedWords("after the turn", ("later",), f"{INTEGRATION_PATH}windowed_conversation/agents/"),
    ReplacedWords("after the turn", ("later",), f"{INTEGRATION_PATH}windowed_conversation/turn/"),
)
# Words that are too vague for a complete name: a value needs a noun as its name, and a function a more specific verb.
VAGUE_NAMES = {"told", "held", "kept", "asked", "known", "noted", "remembered", "written", "tell", "figure", "figures"}
# Functions that Home Assistant looks up by name in several modules.
SHARED_FUNCTION_NAMES = {"async_setup_entry", "async_unload_entry"}
_REPLACED_PHRASES = (
    "'s business",
    "decided elsewhere",
    "None where",
    "is told",
    "are told",
    "so many",
    "in the place of",
)
PHRASE_PATTERN = re.compile("|".join(_REPLACED_PHRASES).replace(" ", r"\s+"), re.IGNORECASE)


def iter_replaced_names(source: str, path: str = "") -> Iterator[tuple[int, str]]:
    """Yield the line of each definition whose name contains a replaced word, and the name with the word to use instead.

    `path` is the path of the source in the repository. Names of tests are sentences and may contain any words.
    """
    for line, name in _list_defined_names(source):
        if not name.startswith("test_"):
            rows = (row for row in _find_rows(name) if row.path_part in path)
            yield from ((line, f"{name} ({row.preferred_word})") for row in rows)


@cache
def _find_rows(name: str) -> list[ReplacedWords]:
    """Return the rows of the table with a word in a name."""
    snake = f"_{re.sub(r'(?<=[a-z])(?=[A-Z])', '_', name).lower()}_"
    return [row for row in REPLACEMENTS if any(f"_{part}_" in snake for part in row.replaced_words)]


def iter_vague_names(source: str) -> Iterator[tuple[int, str]]:
    """Yield the line and name of each definition in the integration whose name is one of `VAGUE_NAMES`."""
    for line, name in _list_defined_names(source):
        if name.strip("_").lower() in VAGUE_NAMES:
            yield line, f"{name} (name the noun)"


def iter_ambiguous_names(modules: Iterable[tuple[str, str]]) -> Iterator[tuple[str, list[str]]]:
    """Yield each public class or function that is defined in several modules, and the paths of these modules.

    `modules` are pairs of a path and its source. Folders of `providers/` may share names, because each defines them for
    its own format.
    """
    paths: defaultdict[str, set[str]] = defaultdict(set)
    for path, source in modules:
        vendor = re.sub(r"(/providers)/[^/]+/[^/]+$", r"\1/*", path)
        for node in ast.parse(source).body:
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.name[0] != "_":
                paths[node.name].add(vendor)
    yield from (
        (name, sorted(found)) for name, found in paths.items() if len(found) > 1 and name not in SHARED_FUNCTION_NAMES
    )


@lru_cache(maxsize=1)
def _list_defined_names(source: str) -> list[tuple[int, str]]:
    """Return the line and the name of each definition. A module is searched for several kinds of names in a row."""
    nodes = ast.walk(ast.parse(source))
    return [(getattr(node, "lineno", 0), name) for node in nodes for name in _iter_defined_names(node)]


def _iter_defined_names(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.arg(arg=name):
            yield name
        case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
            yield name


def iter_replaced_phrases(text: str) -> Iterator[tuple[int, str]]:
    """Yield the line and text of each phrase to be replaced, including phrases that span two lines."""
    for found in PHRASE_PATTERN.finditer(text):
        yield text.count("\n", 0, found.start()) + 1, " ".join(found[0].split())


def _iter_text_files() -> Iterator[Path]:
    yield from REPOSITORY.glob("*.md")
    for folder in FOLDERS:
        yield from (path for path in sorted((REPOSITORY / folder).rglob("*")) if path.suffix in TEXT_SUFFIXES)


def main() -> int:
    """Print the findings, and return 1 if there are any."""
    found = 0
    modules = [
        (path, path.read_text(encoding="utf-8")) for path in sorted((REPOSITORY / INTEGRATION_PATH).rglob("*.py"))
    ]
    for name, paths in iter_ambiguous_names((path.relative_to(REPOSITORY).as_posix(), text) for path, text in modules):
        print(f"{name} has several meanings: {', '.join(paths)}")
        found += 1
    for path in _iter_text_files():
        if path == Path(__file__).resolve():
            continue
        text = path.read_text(encoding="utf-8")
        where = path.relative_to(REPOSITORY).as_posix()
        hits = [*iter_replaced_phrases(text), *(iter_replaced_names(text, where) if path.suffix == ".py" else ())]
        hits += iter_vague_names(text) if where.startswith(INTEGRATION_PATH) and path.suffix == ".py" else ()
        for line, words in sorted(hits):
            print(f"{where}:{line}: {words}")
        found += len(hits)
    return int(found > 0)


if __name__ == "__main__":
    sys.exit(main())
