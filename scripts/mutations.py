"""Possible mistakes in a line of Python: each is the complete module with one change in its syntax tree."""

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

_OPERATOR_SWAPS: dict[type[ast.AST], type[ast.AST]] = {
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
_FUNCTION_SWAPS = {"min": "max", "max": "min", "any": "all", "all": "any"}
# Fields of syntax nodes that contain only types or decorators, which are not changed.
_SKIPPED_FIELDS = {"annotation", "returns", "type_params", "decorator_list"}

type _AttributeChange = tuple[ast.AST, str, Any]


@dataclass(frozen=True, slots=True)
class Mutation:
    """A module with one change: the line number, the statement before and after it, and the complete changed source."""

    line: int
    before: str
    after: str
    source: str


def iter_mutations(source: str) -> Iterator[Mutation]:
    """Yield each possible change of a module."""
    for number in range(len(list(_iter_changes(ast.parse(source))))):
        tree = ast.parse(source)
        line, shown, change = list(_iter_changes(tree))[number]
        before = ast.unparse(shown)
        after = change()
        yield Mutation(line, _first_line(before), _first_line(ast.unparse(after or shown)), ast.unparse(tree))


def _first_line(code: str) -> str:
    return code.partition("\n")[0]


def _iter_changes(tree: ast.Module) -> Iterator[tuple[int, ast.AST, Callable[[], ast.AST | None]]]:
    """Yield each change: its line, the statement or expression to show, and a function that applies it to the tree.

    The function returns the new node, or None if the shown node was changed in place.
    """
    for parent, name, place, node in _iter_nodes(tree):
        for new in _iter_replacements(node, name):
            yield node.lineno, node, _make_node_replacer(parent, name, place, new)
        for inner, attribute, value in _iter_swaps(node):
            yield node.lineno, node, _make_attribute_setter(inner, attribute, value)


def _iter_nodes(parent: ast.AST) -> Iterator[tuple[ast.AST, str, int | None, Any]]:
    """Yield the statements and expressions to change, each with its parent, its field, and its index in a list.

    The index is None if the field is not a list.
    """
    for name, value in ast.iter_fields(parent):
        if name in _SKIPPED_FIELDS:
            continue
        for place, node in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if isinstance(node, ast.AST) and not _is_unchangeable(node):
                if isinstance(node, ast.stmt | ast.expr):
                    yield parent, name, place, node
                yield from _iter_nodes(node)


def _is_unchangeable(node: ast.AST) -> bool:
    """Return whether a node must not be changed, such as an import, type alias, docstring, protocol or f-string."""
    match node:
        case ast.TypeAlias() | ast.Import() | ast.ImportFrom() | ast.Expr(value=ast.Constant()) | ast.JoinedStr():
            return True
        case ast.Assign(targets=[ast.Name(id="__slots__" | "__all__")]):
            return True
        case ast.ClassDef(bases=[*_, ast.Name(id="Protocol")]):
            return True
    return False


def _iter_replacements(node: ast.stmt | ast.expr, name: str) -> Iterator[ast.AST]:
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


def _iter_swaps(node: ast.stmt | ast.expr) -> Iterator[_AttributeChange]:
    """Yield the operators and functions in a node that can be swapped: the node, its attribute, and the new value."""
    match node:
        case ast.Compare(ops=[operator]):
            yield node, "ops", [_OPERATOR_SWAPS[type(operator)]()]
        case ast.BinOp(op=operator) | ast.BoolOp(op=operator) | ast.AugAssign(op=operator) if (
            type(operator) in _OPERATOR_SWAPS
        ):
            yield node, "op", _OPERATOR_SWAPS[type(operator)]()
        case ast.Call(func=ast.Name(id=name) as function) if name in _FUNCTION_SWAPS:
            yield function, "id", _FUNCTION_SWAPS[name]


def _make_node_replacer(parent: ast.AST, name: str, index: int | None, new: ast.AST) -> Callable[[], ast.AST | None]:
    def replace_node() -> ast.AST:
        if index is None:
            setattr(parent, name, new)
        else:
            getattr(parent, name)[index] = new
        return new

    return replace_node


def _make_attribute_setter(node: ast.AST, attribute: str, value: object) -> Callable[[], ast.AST | None]:
    return lambda: setattr(node, attribute, value)
