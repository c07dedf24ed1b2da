"""List names and phrases that this repository has a better word for; the table is in CONTRIBUTING.md.

    .venv/test/bin/python scripts/check_words.py      ends with 1 if there are any

Names are those of classes, functions, parameters, fields and constants, by syntax tree. Phrases are looked for in all
texts: code, documentation and translations.
"""

import ast
from collections.abc import Iterator
from pathlib import Path
import re
import sys

REPOSITORY = Path(__file__).resolve().parents[1]
FOLDERS = ("custom_components", "tests", "demo", "benchmarks", "scripts", "docs")
TEXTS = {".py", ".md", ".json", ".yaml", ".toml"}

# Parts of names, and the word that stands for each.
NAMES = {
    "let_go": "evict, or drop for a window",
    "give_up": "evict",
    "left_out": "excluded",
    "leave_out": "exclude",
    "first_word": "first_token",
    "silence": "idle_timeout",
    "kept_free": "max_answer_tokens",
    "reply_tokens": "max_answer_tokens",
    "other_agent": "fallback_agent",
    "put_off": "after_turn",
}
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


def replaced_names(source: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the name of each definition with a replaced word. Names of tests are sentences."""
    for node in ast.walk(ast.parse(source)):
        for name in _defined(node):
            snake = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
            if not name.startswith("test_") and any(part in snake for part in NAMES):
                yield getattr(node, "lineno", 0), name


def _defined(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.arg(arg=name):
            yield name
        case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
            yield name


def replaced_phrases(text: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the words of each replaced phrase, also of one that is broken over two lines."""
    for found in PHRASES.finditer(text):
        yield text.count("\n", 0, found.start()) + 1, " ".join(found[0].split())


def _files() -> Iterator[Path]:
    yield from REPOSITORY.glob("*.md")
    for folder in FOLDERS:
        yield from (path for path in sorted((REPOSITORY / folder).rglob("*")) if path.suffix in TEXTS)


def main() -> int:
    """Print what was found, and return 1 if there is any."""
    found = 0
    for path in _files():
        if path == Path(__file__).resolve():
            continue
        text = path.read_text(encoding="utf-8")
        hits = [*replaced_phrases(text), *(replaced_names(text) if path.suffix == ".py" else ())]
        for line, words in sorted(hits):
            print(f"{path.relative_to(REPOSITORY)}:{line}: {words}")
        found += len(hits)
    return int(found > 0)


if __name__ == "__main__":
    sys.exit(main())
