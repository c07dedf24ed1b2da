"""Check the English of README, docs and the interface texts, without network: spelling, grammar and long sentences.

    .venv/test/bin/python scripts/check_prose.py      ends with 1 if it finds anything

In all code, docstrings must name a noun: "Return what is sent" is refused, and so is a class that is "How it was sent".
Within sentences of docstrings and comments, each folder may have a few headless clauses per thousand words, see
`MAX_HEADLESS_RATE`. The checker is Harper (https://writewithharper.com), used from Python through
https://github.com/Maksim-Burtsev/harper-py.
"""

import ast
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
import gc
from io import StringIO
import json
from pathlib import Path
import re
import sys
import tokenize
from typing import Any, NamedTuple

import harper

REPOSITORY = Path(__file__).resolve().parents[1]
TRANSLATIONS_FILE = REPOSITORY / "custom_components" / "windowed_conversation" / "translations" / "en.json"
PAGES = (REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").rglob("*.md")))

# Rules that are turned off, and the reason for each.
DISABLED_RULES = {
    "ExpandMemoryShorthands": "units are written as symbols",
    "ExpandTimeShorthands": "units are written as symbols",
    "SentenceCapitalization": "cells of tables, parts of lists and labels are not sentences",
    "Spaces": "names of files begin with a dot",
    "UseEllipsisCharacter": 'three dots stand for the words that follow, as in "forget that ..."',
    "UseTitleCase": "headings are in sentence case, as in Home Assistant's documentation",
}
# Findings of the checker that are correct English, by rule and text, and the reason for each.
ACCEPTED_FINDINGS = {
    ("DisjointPrefixes", "pre-releases"): "part of a label of the Marketplace",
    ("ExpandDirectory", "dirs"): "part of a name, allowlist_external_dirs",
    ("SplitWords", "allowlist"): "part of a name, allowlist_external_dirs",
    ("OrthographicConsistency", "Hm"): "a sound that people make",
    ("OrthographicConsistency", "aarch64"): "as Python's packages write it",
    ("OrthographicConsistency", "http"): "the beginning of an address",
    ("OrthographicConsistency", "https"): "the beginning of an address",
    ("OrthographicConsistency", "kB"): "the symbol of a unit",
    ("OrthographicConsistency", "md"): "the end of a file's name",
    ("OrthographicConsistency", "openai"): "part of an address",
    ("RepeatedWords", "hours* hours"): "a placeholder and the word after it",
    ("SpellCheck", "C."): "a unit at the end of a sentence",
    ("SpellCheck", "o"): "the end of GPT-4o",
    ("SpellCheck", "ons"): "the end of add-ons",
    ("SpellCheck", "s"): "the ending after a name in code",
    ("MissingPreposition", "household "): "the object of the verb",
    ("AWhile", "a while"): 'the object of "is taking"',
}
# Names and terms that are missing from the checker's dictionary.
KNOWN_WORDS = (
    *("Murdock", "VoiceBM"),
    *("aarch64", "CJK", "FTS5", "HACS", "Hm", "http", "https", "jsonl", "kB", "LM", "MB", "md", "musl", "OS", "v1"),
    *(
        "carbonara",
        "checkpointer",
        "cpp",
        "ESPHome",
        "generateContent",
        "Kalman",
        "LangGraph",
        "MiniLM",
        "o200k",
    ),
    *("OpenRouter", "genai", "LocalAI", "Groq", "p50", "p95", "snowballstemmer", "tiktoken", "trigram", "vLLM", "WebP"),
)
CODE_FOLDERS = ("custom_components", "demo", "benchmarks", "examples", "scripts", "tests")
_PRONOUN_PATTERN = "(what|how|who|whose|which|where|whether|when)"
_HEADLESS_SUBJECT_PATTERN = re.compile(rf"{_PRONOUN_PATTERN}\b", re.IGNORECASE)
_HEADLESS_RETURN_PATTERN = re.compile(r"(Return|Yield)s? (what|how|who|whose|which|where)\b")
# A clause that replaces a noun without naming it. Quoted text is ignored, because it is an example.
_HEADLESS_CLAUSE_PATTERN = re.compile(
    r"\bwhat(?:ever)?\b"
    r"|\b(?:of|for|to|with|by|from|than|on) (?:who|whoever|whose|whom|how|where|when)\b(?! (?:many|much|long|often))",
    re.IGNORECASE,
)
_QUOTED_PATTERN = re.compile(r'"[^"]*"|`[^`]*`')
# Maximum number of headless clauses per thousand words of docstrings and comments in a folder, by top-level folder.
# Home Assistant's core has 0.4.
MAX_HEADLESS_RATE = {
    "custom_components": 1.0,
    "demo": 3.0,
    "benchmarks": 3.0,
    "examples": 1.0,
    "scripts": 3.0,
    "tests": 3.0,
}

type Definition = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
_DEFINITIONS = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
_STATEMENTS = (ast.stmt, ast.excepthandler, ast.match_case)

# A placeholder represents a word or a number. The checker reads it as a number, which fits into more sentences.
PLACEHOLDER_PATTERN = re.compile(r"{\w+}")


class Finding(NamedTuple):
    """A finding of the checker: its place, the rule, the text it concerns, and the message."""

    location: str
    rule: str
    text: str
    message: str

    def __str__(self) -> str:
        return f"{self.location}: {self.text!r} {self.message} ({self.rule})"


def create_linter() -> harper.Linter:
    """Return a checker with the rules and words of this repository."""
    linter = harper.Linter()
    linter.set_lint_config({**linter.get_lint_config(), **dict.fromkeys(DISABLED_RULES, False)})
    linter.import_words(list(KNOWN_WORDS))
    return linter


def iter_findings(linter: harper.Linter, where: str, text: str) -> Iterator[Finding]:
    """Yield the checker's findings in a text."""
    for rule, lints in linter.organized_lints(text).items():
        for lint in lints:
            line = text.count("\n", 0, lint.span.start) + 1
            yield Finding(f"{where}:{line}", rule, lint.problem_text, lint.message)


def iter_interface_texts(texts: Mapping[str, Any], path: str = "en.json") -> Iterator[tuple[str, str]]:
    """Yield the path and the content of each interface text."""
    for key, value in texts.items():
        if isinstance(value, dict):
            yield from iter_interface_texts(value, f"{path}.{key}")
        else:
            yield f"{path}.{key}", PLACEHOLDER_PATTERN.sub("7", value)


@cache
def find_definitions(code: str) -> list[Definition]:
    """Return a module with its classes and functions. Expressions, which are most of a module, contain none of them."""
    nodes: list[ast.AST] = [ast.parse(code)]
    for node in nodes:
        nodes += [child for child in ast.iter_child_nodes(node) if isinstance(child, _STATEMENTS)]
    return [node for node in nodes if isinstance(node, _DEFINITIONS)]


def iter_headless_docstrings(path: str, code: str) -> Iterator[Finding]:
    """Yield the docstrings of a module that do not name a noun, such as "Return what is sent"."""
    for node in find_definitions(code):
        text = ast.get_docstring(node) or ""
        is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        headless = _HEADLESS_RETURN_PATTERN if is_function else _HEADLESS_SUBJECT_PATTERN
        if found := headless.match(text):
            yield Finding(f"{path}:{getattr(node, 'lineno', 1)}", "HeadlessDocstring", found[0], "names no noun")


@cache
def list_prose(code: str) -> list[tuple[int, str]]:
    """Return the line number and the text of each docstring and comment in a module."""
    prose = []
    for node in find_definitions(code):
        text = ast.get_docstring(node)
        prose += [(node.body[0].lineno, text)] if text else []
    for token in tokenize.generate_tokens(StringIO(code).readline):
        if token.type == tokenize.COMMENT:
            prose.append((token.start[0], token.string))
    return prose


def iter_headless_clauses(path: str, code: str) -> Iterator[Finding]:
    """Yield the clauses without a noun in the docstrings and comments of a module."""
    for line, text in list_prose(code):
        unquoted = _QUOTED_PATTERN.sub(lambda quoted: " " * len(quoted[0]), text)
        for found in _HEADLESS_CLAUSE_PATTERN.finditer(unquoted):
            around = " ".join(text[max(0, found.start() - 20) : found.end() + 30].split())
            at = f"{path}:{line + text.count(chr(10), 0, found.start())}"
            yield Finding(at, "HeadlessClause", around, "names no noun")


def iter_excess_clauses(modules: Iterable[tuple[str, str]]) -> Iterator[Finding]:
    """Yield the headless clauses of each folder that exceeds its limit. `modules` are paths and their sources."""
    folders: dict[str, list[tuple[str, str]]] = {}
    for path, code in modules:
        folders.setdefault(path.rpartition("/")[0], []).append((path, code))
    for folder, its_modules in folders.items():
        words = sum(len(text.split()) for _, code in its_modules for _, text in list_prose(code))
        found = [clause for path, code in its_modules for clause in iter_headless_clauses(path, code)]
        if 1_000 * len(found) > MAX_HEADLESS_RATE[folder.partition("/")[0]] * words:
            yield from found


def main() -> int:
    """Print the findings and the exceptions that are no longer needed, and return 1 if there are any."""
    # all syntax trees are kept, and collections would visit them again and again
    gc.disable()
    linter = create_linter()
    texts = [(str(page.relative_to(REPOSITORY)), page.read_text(encoding="utf-8")) for page in PAGES]
    # the same text may occur several times
    once = {
        text: where for where, text in iter_interface_texts(json.loads(TRANSLATIONS_FILE.read_text(encoding="utf-8")))
    }
    texts += [(where, text) for text, where in once.items()]
    found = [finding for where, text in texts for finding in iter_findings(linter, where, text)]
    wrong = [str(finding) for finding in found if (finding.rule, finding.text) not in ACCEPTED_FINDINGS]
    modules = [path for folder in CODE_FOLDERS for path in sorted((REPOSITORY / folder).rglob("*.py"))]
    codes = [(path.relative_to(REPOSITORY).as_posix(), path.read_text(encoding="utf-8")) for path in modules]
    wrong += [str(finding) for path, code in codes for finding in iter_headless_docstrings(path, code)]
    wrong += map(str, iter_excess_clauses(codes))
    needless = ACCEPTED_FINDINGS.keys() - {(finding.rule, finding.text) for finding in found}
    wrong += [f"An exception that is not needed: {rule}, {words!r}" for rule, words in sorted(needless)]
    print("\n".join(wrong), end="\n" if wrong else "")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
