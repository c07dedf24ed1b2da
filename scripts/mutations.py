"""The ways in which a line of Python can be wrong: each is a whole module in which one place of the syntax differs."""

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

_SWAPPED: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.Div: ast.Mult,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
    ast.And: ast.Or,
    ast.Or: ast.And,
}
_FUNCTIONS = {"min": "max", "max": "min", "any": "all", "all": "any"}
# Statements that describe, and do nothing.
_DECLARING = {"annotation", "returns", "type_params", "decorator_list"}

type _Change = tuple[ast.AST, str, Any]


@dataclass(frozen=True, slots=True)
class Mutation:
    """A module with one change: the line of its source, that statement before and after, and the whole source after."""

    line: int
    before: str
    after: str
    source: str


def mutations(source: str) -> Iterator[Mutation]:
    """Yield the module with each change that there is."""
    for number in range(len(list(_changes(ast.parse(source))))):
        tree = ast.parse(source)
        line, shown, change = list(_changes(tree))[number]
        before = ast.unparse(shown)
        after = change()
        yield Mutation(line, _first_line(before), _first_line(ast.unparse(after or shown)), ast.unparse(tree))


def _first_line(code: str) -> str:
    return code.partition("\n")[0]


def _changes(tree: ast.Module) -> Iterator[tuple[int, ast.AST, Callable[[], ast.AST | None]]]:
    """Yield the line of each change, the statement or expression to show, and the function that makes it.

    The function returns the changed node, if it is another one.
    """
    for parent, name, place, node in _nodes(tree):
        for new in _replacements(node, name):
            yield node.lineno, node, _putting(parent, name, place, new)
        for inner, attribute, value in _swaps(node):
            yield node.lineno, node, _setting(inner, attribute, value)


def _nodes(parent: ast.AST) -> Iterator[tuple[ast.AST, str, int | None, Any]]:
    """Go through statements and expressions that do something: where each of them is, and itself."""
    for name, value in ast.iter_fields(parent):
        if name in _DECLARING:
            continue
        for place, node in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if isinstance(node, ast.AST) and not _declares(node):
                if isinstance(node, ast.stmt | ast.expr):
                    yield parent, name, place, node
                yield from _nodes(node)


def _declares(node: ast.AST) -> bool:
    """Return whether a node is an import, a type, a docstring, a list of names, a protocol, a part of a text."""
    match node:
        case ast.TypeAlias() | ast.Import() | ast.ImportFrom() | ast.Expr(value=ast.Constant()) | ast.JoinedStr():
            return True
        case ast.Assign(targets=[ast.Name(id="__slots__" | "__all__")]):
            return True
        case ast.ClassDef(bases=[*_, ast.Name(id="Protocol")]):
            return True
    return False


def _replacements(node: ast.stmt | ast.expr, name: str) -> Iterator[ast.AST]:
    """Yield the nodes that may replace a node."""
    match node:
        case ast.Expr() | ast.AugAssign() | ast.Raise() | ast.Break() | ast.Continue() | ast.Delete():
            yield ast.Pass()
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            yield ast.Pass()
        case ast.Return(value=ast.expr() as value) if not isinstance(value, ast.Constant) or value.value is not None:
            yield ast.Return(ast.Constant(None))
        case ast.Constant(value=bool() as value):
            yield ast.Constant(not value)
        case ast.Constant(value=int() as value):
            yield ast.Constant(value + 1)
    if name in {"test", "ifs"} and isinstance(node, ast.expr):
        yield ast.UnaryOp(ast.Not(), node)


def _swaps(node: ast.stmt | ast.expr) -> Iterator[_Change]:
    """Yield the operators and functions in a node that may be swapped for others: where each is, and the other."""
    match node:
        case ast.Compare(ops=[operator]):
            yield node, "ops", [_SWAPPED[type(operator)]()]
        case ast.BinOp(op=operator) | ast.BoolOp(op=operator) | ast.AugAssign(op=operator) if (
            type(operator) in _SWAPPED
        ):
            yield node, "op", _SWAPPED[type(operator)]()
        case ast.Call(func=ast.Name(id=name) as function) if name in _FUNCTIONS:
            yield function, "id", _FUNCTIONS[name]


def _putting(parent: ast.AST, name: str, place: int | None, new: ast.AST) -> Callable[[], ast.AST | None]:
    def put() -> ast.AST:
        if place is None:
            setattr(parent, name, new)
        else:
            getattr(parent, name)[place] = new
        return new

    return put


def _setting(node: ast.AST, attribute: str, value: object) -> Callable[[], ast.AST | None]:
    return lambda: setattr(node, attribute, value)
