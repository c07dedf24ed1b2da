"""Possible mistakes in a line of Python: each is the complete module with one change in its syntax tree."""

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
# Fields of syntax nodes that contain only types or decorators, which are not changed.
_DECLARING = {"annotation", "returns", "type_params", "decorator_list"}

type _Change = tuple[ast.AST, str, Any]


@dataclass(frozen=True, slots=True)
class Mutation:
    """A module with one change: the line number, the statement before and after it, and the complete changed source."""

    line: int
    before: str
    after: str
    source: str


def mutations(source: str) -> Iterator[Mutation]:
    """Yield each possible change of a module."""
    for number in range(len(list(_changes(ast.parse(source))))):
        tree = ast.parse(source)
        line, shown, change = list(_changes(tree))[number]
        before = ast.unparse(shown)
        after = change()
        yield Mutation(line, _first_line(before), _first_line(ast.unparse(after or shown)), ast.unparse(tree))


def _first_line(code: str) -> str:
    return code.partition("\n")[0]


def _changes(tree: ast.Module) -> Iterator[tuple[int, ast.AST, Callable[[], ast.AST | None]]]:
    """Yield each change: its line, the statement or expression to show, and a function that applies it to the tree.

    The function returns the new node, or None if the shown node was changed in place.
    """
    for parent, name, place, node in _nodes(tree):
        for new in _replacements(node, name):
            yield node.lineno, node, _putting(parent, name, place, new)
        for inner, attribute, value in _swaps(node):
            yield node.lineno, node, _setting(inner, attribute, value)


def _nodes(parent: ast.AST) -> Iterator[tuple[ast.AST, str, int | None, Any]]:
    """Yield the statements and expressions to change, each with its parent, its field, and its index in a list.

    The index is None if the field is not a list.
    """
    for name, value in ast.iter_fields(parent):
        if name in _DECLARING:
            continue
        for place, node in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if isinstance(node, ast.AST) and not _declares(node):
                if isinstance(node, ast.stmt | ast.expr):
                    yield parent, name, place, node
                yield from _nodes(node)


def _declares(node: ast.AST) -> bool:
    """Return whether a node must not be changed, such as an import, type alias, docstring, protocol or f-string."""
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
    """Yield the operators and functions in a node that can be swapped: the node, its attribute, and the new value."""
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
