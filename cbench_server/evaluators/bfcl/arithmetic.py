"""Arithmetic on literals, as an argument such as `60 * 60` has it, within bounds."""

import ast
import operator
from collections.abc import Callable
from typing import Any

_MAX_BITS = 20_000
_MAX_ITEMS = 20_000

_OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
    ast.BitOr: operator.or_,
    ast.BitAnd: operator.and_,
    ast.BitXor: operator.xor,
}
_SIGNS: dict[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Invert: operator.invert,
    ast.Not: operator.not_,
}


def computed(node: ast.expr) -> Any:
    """Return what an expression of literals comes to; ValueError for any other, or one too big."""
    match node:
        case ast.Constant(value=int() | float() | complex() | str()):
            return node.value
        case ast.List():
            return [computed(element) for element in node.elts]
        case ast.Tuple():
            return tuple(computed(element) for element in node.elts)
        case ast.UnaryOp():
            return _SIGNS[type(node.op)](computed(node.operand))
        case ast.BinOp():
            left, right = computed(node.left), computed(node.right)
            _check_size(node.op, left, right)
            if (work := _OPERATORS.get(type(node.op))) is not None:
                return work(left, right)
    raise ValueError("not arithmetic on literals")


def _check_size(sign: ast.operator, left: Any, right: Any) -> None:
    sizes = [len(each) for each in (left, right) if isinstance(each, str | list | tuple)]
    numbers = [each for each in (left, right) if isinstance(each, int)]
    if sizes:
        # A format such as "%9999999d" would take any amount of memory.
        times = max(numbers, default=1) if isinstance(sign, ast.Mult) else 1
        if isinstance(sign, ast.Mod) or sum(sizes) * times > _MAX_ITEMS:
            raise ValueError("too long")
    elif len(numbers) == 2:
        bits = left.bit_length() + right.bit_length()
        if isinstance(sign, ast.Pow):
            bits = left.bit_length() * max(right, 0)
        elif isinstance(sign, ast.LShift):
            bits = left.bit_length() + max(right, 0)
        if bits > _MAX_BITS:
            raise ValueError("too large")
