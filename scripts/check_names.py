"""List back-ticked names in docstrings and comments that name nothing in the place where they stand.

    .venv/test/bin/python scripts/check_names.py      ends with 1 if there are any

A name has to be a parameter, variable or string of its function, a member of its class or of a base of it, a name or
string at the top level of its module, or a public class. The class, value or module before a dot has to have what
follows. The docstring of a module may name the modules beside it and each of its strings, and files have to exist.
Other text in back-ticks, such as a command or the path of a URL, is no name.

A class docstring that explains many of its fields is refused too: a comment above each field does that.
"""

import ast
import builtins
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cache, cached_property
import gc
from importlib.util import find_spec
from io import StringIO
import keyword
from pathlib import Path
from pkgutil import resolve_name
import re
import sys
import tokenize
from typing import NamedTuple

REPOSITORY = Path(__file__).resolve().parents[1]
INTEGRATION_FOLDER = "custom_components"
FOLDERS = (INTEGRATION_FOLDER, "demo", "benchmarks", "examples", "scripts", "tests")
MAX_FIELDS_IN_DOCSTRING = 3

_SPAN_PATTERN = re.compile(r"(?<!`)`([^`]+)`(?!`)")
_NAME_PATTERN = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")
_CALL_PATTERN = re.compile(rf"(?:{_NAME_PATTERN.pattern})\(.*\)|[A-Za-z_]\w*=\S.*")
_PATH_PATTERN = re.compile(
    rf"\w[\w./-]*(?:/|\.(?:py|md|json|yaml|toml|txt|js|svg))|(?:{'|'.join(FOLDERS)}|docs)/[\w./-]+"
)
_CLASS_NAME_PATTERN = re.compile(r"[A-Z]\w*[a-z]\w*")
_SQL_PATTERN = re.compile(r"\b(?:SELECT|INSERT|UPDATE|DELETE|CREATE|FROM|PRAGMA)\b")
_LITERALS = {*dir(builtins), *keyword.kwlist, *keyword.softkwlist}
_LAYOUT_TOKENS = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_DEFINITIONS = (*_FUNCTIONS, ast.ClassDef)

type _Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


class WrongName(NamedTuple):
    """A name that names nothing, or a class docstring with too many fields, and its place in the repository."""

    path: str
    line: int
    name: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.name}"


class Prose(NamedTuple):
    """A docstring or comment that begins in `line`. It belongs to the definitions around `code_line`."""

    line: int
    code_line: int
    text: str

    def iter_spans(self) -> Iterator[tuple[int, str]]:
        """Yield the line and the text of each part in back-ticks."""
        for found in _SPAN_PATTERN.finditer(self.text):
            yield self.line + self.text.count("\n", 0, found.start()), " ".join(found[1].split())


class Module:
    """A module of the repository: its syntax, prose and names."""

    def __init__(self, path: str, code: str) -> None:
        self.path = path
        self.dotted_path = path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        self.folder = path.rpartition("/")[0].replace("/", ".")
        self.code = code
        tree = ast.parse(code)
        self.nodes = list(ast.walk(tree))
        self.own_nodes = list(_iter_own_nodes(tree))
        self.definitions = [node for node in self.nodes if isinstance(node, _DEFINITIONS)]

    @cached_property
    def docstrings(self) -> set[ast.Constant]:
        """The docstrings, which include any other string that is a statement."""
        expressions = [node.value for node in self.nodes if isinstance(node, ast.Expr)]
        return {node for node in expressions if isinstance(node, ast.Constant) and isinstance(node.value, str)}

    @cached_property
    def imports(self) -> dict[str, str]:
        """The full path of each name that is imported from elsewhere."""
        imported = [node for node in self.nodes if isinstance(node, ast.ImportFrom) and not node.level]
        return {alias.asname or alias.name: f"{node.module}.{alias.name}" for node in imported for alias in node.names}

    @cached_property
    def names(self) -> set[str]:
        """The names that are defined or imported at the top level."""
        return {name for node in self.own_nodes for name in _iter_defined_names(node)}

    def iter_prose(self) -> Iterator[Prose]:
        """Yield the docstrings and comments. Comments in successive lines are one."""
        for node in self.docstrings:
            yield Prose(node.lineno, node.lineno, str(node.value))
        yield from _iter_comments(self.code)

    def collect_strings(self, nodes: Iterable[ast.AST]) -> set[str]:
        """Return the strings among the nodes of the module, without docstrings."""
        constants = [node for node in nodes if isinstance(node, ast.Constant) and node not in self.docstrings]
        return {node.value for node in constants if isinstance(node.value, str)}

    def find_definitions(self, line: int) -> list[_Definition]:
        """Return the functions and classes around a line, which begin with their decorators."""
        return [node for node in self.definitions if _get_first_line(node) <= line <= (node.end_lineno or 0)]

    def iter_statement_names(self, line: int) -> Iterator[str]:
        """Yield the names that are used in the statements around a line, without those of functions and classes."""
        for node in self.nodes:
            is_around = isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or 0)
            if is_around and not isinstance(node, _DEFINITIONS):
                yield from _iter_used_names(node)


def _iter_own_nodes(scope: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a scope, without those inside of its functions and classes."""
    for node in ast.iter_child_nodes(scope):
        yield node
        if not isinstance(node, _DEFINITIONS):
            yield from _iter_own_nodes(node)


def _iter_defined_names(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.Name(id=name, ctx=ast.Store()):
            yield name
    yield from _iter_imported_names(node)


def _iter_imported_names(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.alias(name=name, asname=short_name):
            yield short_name or name.partition(".")[0]


def _iter_used_names(scope: ast.AST) -> Iterator[str]:
    """Yield the names that a function or statement defines or uses, without those of attributes."""
    for node in ast.walk(scope):
        yield from _iter_defined_names(node)
        match node:
            case ast.Name(id=name) | ast.arg(arg=name) | ast.TypeVar(name=name):
                yield name
            case ast.MatchAs(name=str(name)) | ast.ExceptHandler(name=str(name)):
                yield name


def _get_first_line(node: _Definition) -> int:
    return min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])


def _iter_comments(code: str) -> Iterator[Prose]:
    tokens = list(tokenize.generate_tokens(StringIO(code).readline))
    pending: Prose | None = None
    for number, token in enumerate(tokens):
        if token.type != tokenize.COMMENT:
            continue
        text, (line, column) = token.string.removeprefix("#"), token.start
        code_line = line if token.line[:column].strip() else _find_code_line(tokens, number)
        if pending and pending.code_line == code_line and pending.line + pending.text.count("\n") + 1 == line:
            pending = pending._replace(text=f"{pending.text}\n{text}")
            continue
        if pending:
            yield pending
        pending = Prose(line, code_line, text)
    if pending:
        yield pending


def _find_code_line(tokens: Sequence[tokenize.TokenInfo], number: int) -> int:
    """Return the line that a comment explains: the next one, or the one before it at the end of a block."""
    after = next(token for token in tokens[number:] if token.type not in _LAYOUT_TOKENS)
    if after.start[1] >= tokens[number].start[1]:
        return after.start[0]
    return max(token.end[0] for token in tokens[:number] if token.type not in _LAYOUT_TOKENS)


class Index:
    """The modules that a name may refer to, and their classes."""

    def __init__(self, modules: Iterable[Module]) -> None:
        self.modules = list(modules)
        self.dotted_paths = [module.dotted_path for module in self.modules]
        self._classes: defaultdict[str, list[ast.ClassDef]] = defaultdict(list)
        for module in self.modules:
            for node in module.definitions:
                if isinstance(node, ast.ClassDef):
                    self._classes[node.name].append(node)
        self._members: dict[str, set[str]] = {}

    @cached_property
    def class_names(self) -> set[str]:
        """The names of all public classes, and of classes that a module imports."""
        imported = {name for module in self.modules for node in module.nodes for name in _iter_imported_names(node)}
        return {name for name in imported | self._classes.keys() if _CLASS_NAME_PATTERN.fullmatch(name)}

    def has_class(self, name: str) -> bool:
        """Return whether a module defines a class with this name."""
        return name in self._classes

    def collect_members(self, name: str) -> set[str]:
        """Return the fields and methods of the classes with this name, and of the bases that are defined here."""
        if name not in self._members:
            self._members[name] = set()
            self._members[name].update(*map(self.collect_own_members, self._classes.get(name, ())))
        return self._members[name]

    def collect_own_members(self, node: ast.ClassDef) -> set[str]:
        """Return the fields and methods of one class, and of the bases that are defined here."""
        bases = (ast.unparse(base).partition("[")[0].rpartition(".")[2] for base in node.bases)
        return set(_iter_members(node)).union(*map(self.collect_members, bases))

    def has_path(self, parts: Sequence[str]) -> bool:
        """Return whether the parts of a name lead to a module, to a name in it, or to a member of a class in it."""
        for count in range(len(parts), 0, -1):
            path, rest = f".{'.'.join(parts[:count])}", parts[count:]
            for module in self.modules:
                if f".{module.dotted_path}".endswith(path) and self._has_rest(module, rest):
                    return True
        return False

    def _has_rest(self, module: Module, rest: Sequence[str]) -> bool:
        return (
            not rest
            or (len(rest) == 1 and rest[0] in module.names)
            or (len(rest) == 2 and rest[0] in module.names and rest[1] in self.collect_members(rest[0]))
        )


def _iter_fields(node: ast.ClassDef) -> Iterator[str]:
    """Yield the annotated names of a class, and the attributes that its methods set."""
    for inner in ast.walk(node):
        match inner:
            case ast.Attribute(value=ast.Name(id="self"), attr=name, ctx=ast.Store()):
                yield name
    for statement in node.body:
        match statement:
            case ast.AnnAssign(target=ast.Name(id=name)):
                yield name


def _iter_members(node: ast.ClassDef) -> Iterator[str]:
    for own in _iter_own_nodes(node):
        yield from _iter_defined_names(own)
    yield from _iter_fields(node)


class Place:
    """The code that a docstring or comment belongs to, and the names that exist there."""

    def __init__(self, module: Module, line: int, index: Index) -> None:
        self._module = module
        self._index = index
        self._definitions = module.find_definitions(line)
        self._own_names = set(module.iter_statement_names(line))
        for node in self._definitions:
            self._own_names |= (
                index.collect_own_members(node) if isinstance(node, ast.ClassDef) else set(_iter_used_names(node))
            )
        if self._definitions and isinstance(self._definitions[-1], ast.ClassDef):
            self._own_names |= _collect_class_names(self._definitions[-1])

    @cached_property
    def _strings(self) -> set[str]:
        """The complete strings of the innermost function or class, and those around it that are in no other one."""
        if not self._definitions:
            return self._module.collect_strings(self._module.nodes)
        *outer, inner = self._definitions
        nodes = [*self._module.own_nodes, *(own for node in outer for own in _iter_own_nodes(node)), *ast.walk(inner)]
        return self._module.collect_strings(nodes)

    @cached_property
    def _sql_words(self) -> set[str]:
        """The words of the SQL texts in the function."""
        nodes = ast.walk(self._definitions[-1]) if self._definitions else ()
        texts = filter(_SQL_PATTERN.search, self._module.collect_strings(nodes))
        return {word for text in texts for word in re.findall(r"\w+", text)}

    def has_name(self, name: str) -> bool:
        """Return whether a name, with or without dots, exists here."""
        first, *rest = name.split(".")
        return name in self._strings or (self._has_dotted_name(first, rest) if rest else self._has_simple_name(name))

    def _has_simple_name(self, name: str) -> bool:
        return (
            name in self._own_names
            or name in self._module.names
            or name in _LITERALS
            or name in self._index.class_names
            or name in self._sql_words
        )

    def _has_dotted_name(self, first: str, rest: Sequence[str]) -> bool:
        own_classes = [
            node for node in self._module.definitions if isinstance(node, ast.ClassDef) and node.name == first
        ]
        if own_classes:
            return any(rest[0] in self._index.collect_own_members(node) for node in own_classes)
        if self._index.has_class(first):
            return rest[0] in self._index.collect_members(first)
        if first in self._own_names - self._module.names:
            return self._has_attribute(first, rest[0])
        path = [*self._module.imports.get(first, first).split("."), *rest]
        return self._index.has_path([first, *rest]) or _is_installed(".".join(path)) or {first, *rest} <= self._strings

    def _has_attribute(self, value: str, attribute: str) -> bool:
        """Return whether a local value has an attribute, by the class of its annotation, or else because it is used."""
        nodes = [inner for node in self._definitions for inner in ast.walk(node)]
        classes = [name for node in nodes for name in _iter_annotated_names(node, value) if self._index.has_class(name)]
        if classes:
            return any(attribute in self._index.collect_members(name) for name in classes)
        used = (f".{ast.unparse(node)}" for node in nodes if isinstance(node, ast.Attribute) and node.attr == attribute)
        return any(each.endswith(f".{value}.{attribute}") for each in used)


def _collect_class_names(node: ast.ClassDef) -> set[str]:
    """Return the arguments of a constructor, and the names in annotations and values of fields."""
    own = list(_iter_own_nodes(node))
    arguments = (part.args for part in own if isinstance(part, ast.FunctionDef) and part.name == "__init__")
    return {part.id for part in own if isinstance(part, ast.Name)}.union(*map(_iter_used_names, arguments))


def _iter_annotated_names(node: ast.AST, value: str) -> Iterator[str]:
    """Yield the names in the annotation of a parameter or variable."""
    match node:
        case ast.arg(arg=name, annotation=ast.AST() as annotation) if name == value:
            yield from _iter_used_names(annotation)
        case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation) if name == value:
            yield from _iter_used_names(annotation)


@cache
def _is_installed(path: str) -> bool:
    """Return whether Python, its library or the source of an installed package has something with this dotted path."""
    first, *_ = parts = path.split(".")
    if hasattr(builtins, first) or first in sys.stdlib_module_names:
        with suppress(AttributeError, ImportError):
            resolve_name(f"builtins.{path}" if hasattr(builtins, first) else path)
            return True
    spec = None if first in FOLDERS else find_spec(first)
    folders = spec.submodule_search_locations if spec else None
    return any(_has_source(Path(folder), parts) for folder in folders or ())


def _has_source(package: Path, parts: Sequence[str]) -> bool:
    """Return whether the parts of a name lead to a module of a package, or to something in the last one of them."""
    for count in range(len(parts), 0, -1):
        module = package.joinpath(*parts[1:count])
        for file in (module.with_suffix(".py"), module / "__init__.py"):
            if file.is_file():
                source = Module(f"{'/'.join(parts[:count])}.py", file.read_text(encoding="utf-8"))
                return Index([source]).has_path(parts)
    return False


@cache
def _list_paths() -> list[str]:
    """Return the paths of the files and folders of the repository."""
    folders = [REPOSITORY / folder for folder in (*FOLDERS, "docs")]
    paths = [*REPOSITORY.iterdir(), *(path for folder in folders for path in folder.rglob("*"))]
    return [f"/{path.relative_to(REPOSITORY).as_posix()}" for path in paths]


def _exists(span: str, place: Place) -> bool:
    """Return whether a part in back-ticks names something, or is no name."""
    if _PATH_PATTERN.fullmatch(span):
        return any(path.endswith(f"/{span}".rstrip("/")) for path in _list_paths())
    if _CALL_PATTERN.fullmatch(span):
        return all(map(place.has_name, _iter_call_names(span)))
    return not _NAME_PATTERN.fullmatch(span) or place.has_name(span)


def _iter_call_names(span: str) -> Iterator[str]:
    """Yield the name in a keyword argument, or the names in an expression with calls, as far as it is Python."""
    if "(" not in span.partition("=")[0]:
        yield span.partition("=")[0]
        return
    try:
        tree = ast.parse(span, mode="eval")
    except SyntaxError:
        yield span.partition("(")[0]
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Name | ast.Attribute) and _NAME_PATTERN.fullmatch(name := ast.unparse(node)):
            yield name


def iter_unknown_names(module: Module, index: Index) -> Iterator[WrongName]:
    """Yield the names in the docstrings and comments of a module that name nothing."""
    neighbors = {path.rpartition(".")[2] for path in index.dotted_paths if path.rpartition(".")[0] == module.folder}
    for prose in module.iter_prose():
        place: Place | None = None
        for line, span in prose.iter_spans():
            place = place or Place(module, prose.code_line, index)
            is_neighbor = prose.line == 1 and span in neighbors
            if not is_neighbor and not _exists(span, place):
                yield WrongName(module.path, line, span)


def iter_glossaries(module: Module) -> Iterator[WrongName]:
    """Yield the class docstrings that name too many fields of their class."""
    for node in module.definitions:
        if isinstance(node, ast.ClassDef):
            named = set(_SPAN_PATTERN.findall(ast.get_docstring(node) or "")).intersection(_iter_fields(node))
            if len(named) > MAX_FIELDS_IN_DOCSTRING:
                yield WrongName(module.path, node.lineno, f"{node.name} explains {len(named)} fields in its docstring")


def iter_wrong_names(sources: Iterable[tuple[str, str]]) -> Iterator[WrongName]:
    """Yield each name that names nothing, and each glossary of fields. `sources` are paths and the code of all modules.

    The names in the integration do not refer to other folders.
    """
    modules = [Module(path, code) for path, code in sources]
    indexes = {
        True: Index(module for module in modules if module.path.startswith(f"{INTEGRATION_FOLDER}/")),
        False: Index(modules),
    }
    for module in modules:
        yield from iter_unknown_names(module, indexes[module.path.startswith(f"{INTEGRATION_FOLDER}/")])
        yield from iter_glossaries(module)


def main() -> int:
    """Print the findings, and return 1 if there are any."""
    # all syntax trees are kept, and collections would visit them again and again
    gc.disable()
    paths = [path for folder in FOLDERS for path in sorted((REPOSITORY / folder).rglob("*.py"))]
    sources = [(path.relative_to(REPOSITORY).as_posix(), path.read_text(encoding="utf-8")) for path in paths]
    found = sorted(iter_wrong_names(sources))
    for each in found:
        print(each)
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
