"""Expressions: names, constants, operators, attributes and items, as Python reads them."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from tilewright import errors
from tilewright.frontend.containers import OddContainer
from tilewright.frontend.launchable import Launchable
from tilewright.frontend.names import nearest
from tilewright.frontend.walk.known import BINARY, COMPARE, UNARY, check_plain, known, sequence
from tilewright.frontend.walk.walker import Handler, Listed, Value, Walker


def _constant(t: Walker, node: ast.Constant) -> Value:
    if isinstance(node.value, (bytes, complex, type(...))):
        help = "kernels know numbers, bools, text and None"
        raise t.error(errors.UnsupportedFeatureError, node, f"a kernel has no use for {node.value!r}", help=help)
    return node.value


def _name(t: Walker, node: ast.Name) -> Value:
    binding = t.find(node.id)
    if binding is not None:
        if binding.problem:
            raise t.error(errors.OutOfScopeError, node, binding.problem, help=binding.help)
        return t.read(node, binding)
    try:
        return t.met(node, t.resolver.lookup(node.id))
    except OddContainer as error:
        raise _odd(t, node, error) from None
    except KeyError:
        help = nearest(node.id, [*t.bound_names(), *t.resolver.visible()])
        help = help or "bind it before this line, or define it outside the kernel"
        raise t.error(errors.UndefinedNameError, node, f"Undefined variable '{node.id}'", help=help) from None


def _attribute(t: Walker, node: ast.Attribute) -> Value:
    owner = _taken_from(t, node.value)
    if isinstance(owner, t.runtime):
        return t.attribute(owner, node)
    try:
        return t.resolver.attribute(owner, node.attr)
    except OddContainer as error:
        raise _odd(t, node, error) from None
    except AttributeError:
        raise _missing(t, owner, node) from None


def _taken_from(t: Walker, node: ast.expr) -> Value:
    """Return what an attribute or an item is taken of; a container from outside as it came, to be known again."""
    t.resolver.rest()
    value = t.evaluate(node)
    return value if t.resolver.knows(value) else t.placed(value, node)


def _odd(t: Walker, node: ast.expr, error: OddContainer) -> errors.KernelError:
    return t.error(errors.StaticEvaluationError, node, f"`{ast.unparse(node)}`: {error}", help=error.help)


def _missing(t: Walker, owner: Value, node: ast.Attribute) -> errors.KernelError:
    name, spans = ast.unparse(node.value), [t.span(node)]
    if node.attr in _GROWING and issubclass(type(owner), (tuple, list)):
        message = f"`{name}` cannot grow in place: a kernel's lists are fixed"
        return errors.UnknownAttributeError(message, spans=spans, help=grown(name, owner))
    if issubclass(type(owner), dict) and node.attr in owner:
        help = f"a kernel reads a dict by its keys: {name}[{node.attr!r}]"
        return errors.UnknownAttributeError(f"`{name}` has no attribute '{node.attr}'", spans=spans, help=help)
    help = t.missing(owner, node) or nearest(node.attr, dir(owner), f"{name}.")
    if isinstance(owner, t.namespaces):
        help = help or f"dir({name}) lists what there is"
        is_space = isinstance(node.value, ast.Attribute)
        message = f"Unknown {name} operation: {node.attr}" if is_space else f"Unknown operation '{name}.{node.attr}'"
        if ".distributed" in getattr(owner, "__name__", ""):
            message = f"Unknown distributed operation '{name}.{node.attr}'"
        return errors.UnknownOpError(message, spans=spans, help=help)
    return errors.UnknownAttributeError(f"`{name}` has no attribute '{node.attr}'", spans=spans, help=help)


_GROWING = ("append", "extend", "insert", "pop", "remove", "clear")
"""What would change a list in place."""


def grown(name: str, owner: Value) -> str:
    """Return how a kernel has a longer list or tuple: as a new one under the same name."""
    is_list = isinstance(owner, (list, Listed))
    return f"write `{name} = {name} + {'[value]' if is_list else '(value,)'}`, or give each value a name of its own"


def _subscript(t: Walker, node: ast.Subscript) -> Value:
    owner = _taken_from(t, node.value)
    if isinstance(owner, (t.runtime, Launchable)):
        return t.subscript(owner, node)
    came = t.resolver.latest
    index = _index(t, node.slice)
    t.resolver.latest = came
    try:
        found = t.resolver.item(owner, index)
        return Listed(found) if isinstance(owner, Listed) and isinstance(index, slice) else found
    except IndexError as error:
        help = f"it holds {len(owner)} value(s), counted from 0"
        raise t.error(errors.OutOfBoundsError, node.slice, f"`{ast.unparse(node)}`: {error}", help=help) from None
    except errors.DriftError:
        raise
    except OddContainer as error:
        raise _odd(t, node, error) from None
    except Exception as error:
        raise t.error(errors.StaticEvaluationError, node, f"cannot evaluate `{ast.unparse(node)}`: {error}") from None


def _index(t: Walker, node: ast.expr | None) -> Value:
    """Return what a Python sequence or mapping is indexed by: a known value, or a slice between two."""
    if node is None:
        return None
    if isinstance(node, ast.Slice):
        return slice(*(_index(t, part) for part in (node.lower, node.upper, node.step)))
    return t.index(t.operand(node), node)


def _tuple(t: Walker, node: ast.Tuple) -> Value:
    return tuple(_elements(t, node.elts))


def _list(t: Walker, node: ast.List) -> Value:
    return t.listed(_elements(t, node.elts))


def _elements(t: Walker, nodes: Sequence[ast.expr]) -> list[Value]:
    return [value for node in nodes for value in spread(t, node)]


def spread(t: Walker, node: ast.expr) -> Sequence[Value]:
    """Return what an element of a list, or an argument of a call, stands for: several where it has a star."""
    if not isinstance(node, ast.Starred):
        return (t.operand(node),)
    value = t.operand(node.value)
    if not isinstance(value, (tuple, list)):
        help = "a star is for a tuple or list that is known while the kernel is read, as x.shape is"
        raise t.error(
            errors.OperandError, node, f"only several values can be spread, got {t.describe(value)}", help=help
        )
    return sequence(value)  # pyright: ignore[reportUnknownArgumentType]


class Augmented(ast.BinOp):
    """What an augmented assignment gives its target: `acc + x` of `acc += x`."""


def _binary(t: Walker, node: ast.BinOp) -> Value:
    return combined(t, t.operand(node.left), t.operand(node.right), node)


def combined(t: Walker, lhs: Value, rhs: Value, node: ast.BinOp) -> Value:
    """Return what an operator makes of its operands."""
    if t.computes(lhs) or t.computes(rhs):
        return t.binary(node.op, lhs, rhs, node)
    return known(t, node, BINARY[type(node.op)], lhs, rhs)


def _unary(t: Walker, node: ast.UnaryOp) -> Value:
    value = t.operand(node.operand)
    if t.computes(value):
        return t.unary(node.op, value, node)
    return known(t, node, UNARY[type(node.op)], value)


def _compare(t: Walker, node: ast.Compare) -> Value:
    t.check_comparison(node)
    result, lhs = True, t.operand(node.left)
    for op, right in zip(node.ops, node.comparators, strict=True):
        rhs = t.operand(right)
        compared = _compared(t, op, lhs, rhs, node)
        if result is not True:
            both = t.placed(result, node), t.placed(compared, node)
            compared = _joined(t, True, *both, node, node)
        result = compared
        if not isinstance(result, t.runtime) and not result:
            break
        lhs = rhs
    return result


def _compared(t: Walker, op: ast.cmpop, lhs: Value, rhs: Value, node: ast.Compare) -> Value:
    if isinstance(op, (ast.Is, ast.IsNot)) and (lhs is None or rhs is None):
        return (lhs is rhs) == isinstance(op, ast.Is)
    if t.is_runtime(lhs) or t.is_runtime(rhs) or t.computes(lhs) or t.computes(rhs):
        return t.compare(op, lhs, rhs, node)
    return known(t, node, COMPARE[type(op)], lhs, rhs)


def _logical(t: Walker, node: ast.BoolOp) -> Value:
    is_and = isinstance(node.op, ast.And)
    result = t.operand(node.values[0])
    for where in node.values[1:]:
        if t.short_circuits and not isinstance(result, t.runtime):
            check_plain(t, node, result)
            if bool(result) != is_and:
                return result
        result = _joined(t, is_and, result, t.operand(where), node, where)
    return result


def _joined(t: Walker, is_and: bool, lhs: Value, rhs: Value, node: ast.expr, where: ast.expr) -> Value:
    """Return `and` or `or`: as Python has it where both are known."""
    if isinstance(lhs, t.runtime) or isinstance(rhs, t.runtime):
        return t.logical(is_and, lhs, rhs, node, where)
    check_plain(t, node, lhs)
    return (lhs and rhs) if is_and else (lhs or rhs)


def _conditional(t: Walker, node: ast.IfExp) -> Value:
    condition = t.operand(node.test)
    if isinstance(condition, t.runtime):
        return t.select(condition, node)
    check_plain(t, node.test, condition)
    return t.evaluate(node.body if condition else node.orelse)


def _text(t: Walker, node: ast.JoinedStr) -> str:
    return "".join(_piece(t, part) for part in node.values)


def _piece(t: Walker, part: ast.expr) -> str:
    if not isinstance(part, ast.FormattedValue):
        return str(t.evaluate(part))
    value = t.evaluate(part.value)
    check_plain(t, part.value, value)
    shown = repr(value) if part.conversion == ord("r") else t.show(value)
    if part.format_spec is None or isinstance(value, t.runtime):
        return shown
    spec = t.evaluate(part.format_spec)
    return known(t, part.value, format, shown if isinstance(value, tuple) else value, spec)


EXPRESSIONS: Mapping[type[ast.AST], Handler] = {
    ast.Constant: _constant,
    ast.Name: _name,
    ast.Attribute: _attribute,
    ast.Subscript: _subscript,
    ast.Tuple: _tuple,
    ast.List: _list,
    ast.BinOp: _binary,
    Augmented: _binary,
    ast.UnaryOp: _unary,
    ast.Compare: _compare,
    ast.BoolOp: _logical,
    ast.IfExp: _conditional,
    ast.JoinedStr: _text,
}
"""What the walk does at each kind of expression."""
