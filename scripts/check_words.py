"""List names and phrases that this repository replaces by better ones; the table is in CONTRIBUTING.md.

    .venv/test/bin/python scripts/check_words.py      ends with 1 if there are any

Names are those of classes, functions, parameters, fields and constants, found by syntax tree. Phrases are searched for
in all texts: code, documentation and translations. Each public class or function of the integration needs a unique
name.
"""

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
import re
import sys
from typing import NamedTuple

REPOSITORY = Path(__file__).resolve().parents[1]
FOLDERS = ("custom_components", "tests", "demo", "benchmarks", "scripts", "docs")
TEXTS = {".py", ".md", ".json", ".yaml", ".toml"}


class Row(NamedTuple):
    """A row of the table: the preferred word, and the parts of names that it replaces.

    A part is one or more complete words of a name, in any case: `left_out` is part of `LeftOut` and `_is_left_out`. The
    row applies to files whose path contains `within`.
    """

    word: str
    replaced: tuple[str, ...]
    within: str = ""


PRODUCT = "custom_components/"
TABLE = (
    Row("evict", ("let_go", "lets_go", "give_up", "gives_up", "given_up", "leave_behind", "left_behind", "let_out")),
    Row("evict", ("gone", "go", "goes", "went"), f"{PRODUCT}windowed_conversation/window/"),
    Row("evict", ("drop_exchange", "drop_exchanges", "dropped_exchange", "dropped_exchanges", "dropped_messages")),
    Row("exclude", ("leave_out", "leaves_out", "left_out")),
    Row("first token", ("first_word", "first_words")),
    Row("idle timeout", ("silence", "longest_silence")),
    Row("max answer tokens", ("kept_free", "keep_free", "keeps_free", "reply_tokens", "reply_limit", "reply_reserve")),
    Row("context editing", ("compact", "compacts", "compacted", "compaction"), "providers/anthropic/"),
    Row("compaction", ("context_editing", "edit_context"), "providers/openai/"),
    Row("usage, billed", ("reported", "reported_usage", "usage_told", "told_usage"), PRODUCT),
    Row("fallback agent", ("other_agent", "other_agents", "next_agent", "next_agents", "asked_next", "ask_elsewhere")),
    Row("issue", ("report", "reports", "warning", "warnings"), PRODUCT),
    Row("after the turn", ("put_off", "puts_off", "news")),
    Row("after the turn", ("later",), f"{PRODUCT}windowed_conversation/agents/"),
    Row("after the turn", ("later",), f"{PRODUCT}windowed_conversation/turn/"),
)
# Words that are too vague for a complete name: a value needs a noun as its name, and a function a more specific verb.
PARTICIPLES = {"told", "held", "kept", "asked", "known", "noted", "remembered", "written", "tell", "figure", "figures"}
# Functions that Home Assistant looks up by name in several modules.
HOOKS = {"async_setup_entry", "async_unload_entry"}
_PHRASES = (
    "'s business",
    "decided elsewhere",
    "None where",
    "is told",
    "are told",
    "so many",
    "in the place of",
)
PHRASES = re.compile("|".join(_PHRASES).replace(" ", r"\s+"), re.IGNORECASE)


def replaced_names(source: str, path: str = "") -> Iterator[tuple[int, str]]:
    """Yield the line of each definition whose name contains a replaced word, and the name with the word to use instead.

    `path` is the path of the source in the repository. Names of tests are sentences and may contain any words.
    """
    rows = [row for row in TABLE if row.within in path]
    for node in ast.walk(ast.parse(source)):
        for name in _defined(node):
            if not name.startswith("test_"):
                yield from ((getattr(node, "lineno", 0), f"{name} ({word})") for word in _words_for(name, rows))


def _words_for(name: str, rows: list[Row]) -> list[str]:
    """Return the words that the table suggests for a name."""
    snake = f"_{re.sub(r'(?<=[a-z])(?=[A-Z])', '_', name).lower()}_"
    return [row.word for row in rows if any(f"_{part}_" in snake for part in row.replaced)]


def vague_names(source: str) -> Iterator[tuple[int, str]]:
    """Yield the line and name of each definition in the integration whose name is one of `PARTICIPLES`."""
    for node in ast.walk(ast.parse(source)):
        for name in _defined(node):
            if name.strip("_").lower() in PARTICIPLES:
                yield getattr(node, "lineno", 0), f"{name} (name the noun)"


def ambiguous_names(modules: Iterable[tuple[str, str]]) -> Iterator[tuple[str, list[str]]]:
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
    yield from ((name, sorted(found)) for name, found in paths.items() if len(found) > 1 and name not in HOOKS)


def _defined(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.arg(arg=name):
            yield name
        case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
            yield name


def replaced_phrases(text: str) -> Iterator[tuple[int, str]]:
    """Yield the line and text of each phrase to be replaced, including phrases that span two lines."""
    for found in PHRASES.finditer(text):
        yield text.count("\n", 0, found.start()) + 1, " ".join(found[0].split())


def _files() -> Iterator[Path]:
    yield from REPOSITORY.glob("*.md")
    for folder in FOLDERS:
        yield from (path for path in sorted((REPOSITORY / folder).rglob("*")) if path.suffix in TEXTS)


def main() -> int:
    """Print the findings, and return 1 if there are any."""
    found = 0
    modules = [(path, path.read_text(encoding="utf-8")) for path in sorted((REPOSITORY / PRODUCT).rglob("*.py"))]
    for name, paths in ambiguous_names((path.relative_to(REPOSITORY).as_posix(), text) for path, text in modules):
        print(f"{name} has several meanings: {', '.join(paths)}")
        found += 1
    for path in _files():
        if path == Path(__file__).resolve():
            continue
        text = path.read_text(encoding="utf-8")
        where = path.relative_to(REPOSITORY).as_posix()
        hits = [*replaced_phrases(text), *(replaced_names(text, where) if path.suffix == ".py" else ())]
        hits += vague_names(text) if where.startswith(PRODUCT) and path.suffix == ".py" else ()
        for line, words in sorted(hits):
            print(f"{where}:{line}: {words}")
        found += len(hits)
    return int(found > 0)


if __name__ == "__main__":
    sys.exit(main())
