"""Annotations turned into types."""

from __future__ import annotations

import ast
from typing import Any, get_args, get_origin

from tilewright.core import annotations as ann
from tilewright.core.build import symbolic
from tilewright.core.enums import ParamDirection, TensorLayout
from tilewright.core.expr import Const, Expr
from tilewright.core.extents import as_extent
from tilewright.core.memrefs import MemRefType, Ptr
from tilewright.core.types import (
    ArrayType,
    Extent,
    ScalarType,
    TensorType,
    TileType,
    TupleType,
    Type,
    is_static,
    static_shape,
)
from tilewright.dtypes import INDEX, DataType, objection, show_number
from tilewright.errors import AnnotationError, DriftError
from tilewright.frontend.names import Resolver
from tilewright.frontend.trees import code_of, parsed_expression


def parameter_type(annotation: Any) -> tuple[Type, ParamDirection]:
    """Return the type and direction of an annotated parameter; AnnotationError when it says neither."""
    if isinstance(annotation, ann.Directed):
        type_ = to_type(annotation.annotation)  # pyright: ignore[reportUnknownMemberType]
        if isinstance(type_, ScalarType):
            raise AnnotationError("a scalar cannot be written", help="return it, or write it into a tensor")
        return type_, annotation.direction
    return to_type(annotation), ParamDirection.In


def return_types(annotation: Any) -> tuple[Type, ...]:
    """Return the types a return annotation lists."""
    if annotation is None or annotation is type(None):
        return ()
    if isinstance(annotation, ann.TupleAnnotation):
        return tuple(to_type(element) for element in annotation.elements)
    if get_origin(annotation) is tuple:
        return tuple(to_type(element) for element in get_args(annotation))
    return (to_type(annotation),)


def local_type(annotation: Any) -> Type | None:
    """Return the type an annotation of a local stands for, None for one that says nothing about its value."""
    if annotation in (Ptr, MemRefType):
        return None
    if isinstance(annotation, ann.TupleAnnotation) or get_origin(annotation) is tuple:
        return TupleType(return_types(annotation))
    return to_type(annotation)


def to_type(annotation: Any) -> Type:
    """Return the type an annotation stands for; AnnotationError when it stands for none."""
    match annotation:
        case ann.Tensor():
            return _tensor(annotation)
        case ann.Tile():
            return _tile(annotation)
        case ann.Array():
            return ArrayType(annotation.extent, annotation.dtype)
        case ann.DynExpr():
            raise AnnotationError(
                "a dynamic dim is an extent, not a type", help="use it inside pl.Tensor[[...], dtype]"
            )
        case ann.Scalar():
            return ScalarType(annotation.dtype)
        case DataType():
            return ScalarType(annotation)
        case ann.Directed():
            raise AnnotationError("a direction belongs to a parameter", help="drop pl.Out or pl.InOut")
        case ann.TupleAnnotation():
            help = "one parameter or name per value"
            raise AnnotationError("tuples do not nest, and parameters are no tuples", help=help)
        case _ if annotation in (ann.Out, ann.InOut):
            message = f"bare 'pl.{annotation.__name__}' says a direction, and no type"
            raise AnnotationError(message, help=f"write pl.{annotation.__name__}[pl.Tensor]")
        case _ if annotation in (ann.Tensor, ann.Tile, ann.DistributedTensor):
            message = f"bare 'pl.{annotation.__name__}' says neither shape nor dtype"
            raise AnnotationError(message, help=f"write pl.{annotation.__name__}[[rows, cols], pl.FP32]")
        case _:
            raise AnnotationError(
                f"{_shown(annotation)} is not a type of the language", help="for example pl.Tensor[[64, 64], pl.FP32]"
            )


def _shown(annotation: Any) -> str:
    return repr(annotation.__name__) if isinstance(annotation, type) else repr(annotation)


def _tensor(annotation: ann.Tensor) -> TensorType:
    if annotation.layout is TensorLayout.DN:
        raise AnnotationError(
            "pl.Tensor[..., pl.DN] is not supported", help="pass a transposed tensor: strides are taken as they come"
        )
    shape = tuple(extent(e) for e in annotation.shape)
    layout, valid = annotation.layout or TensorLayout.ND, shape
    if annotation.view is not None:
        layout = annotation.view.layout or layout
        if annotation.view.valid_shape is not None:
            valid = tuple(extent(e) for e in annotation.view.valid_shape)
    return TensorType(shape, annotation.dtype, valid, layout, isinstance(annotation, ann.DistributedTensor))


def _tile(annotation: ann.Tile) -> TileType:
    shape = tuple(extent(e) for e in annotation.shape)
    if not is_static(shape):
        raise AnnotationError(
            "a tile's shape must be static", help="say how much of it holds data with pl.TileView(valid_shape=...)"
        )
    valid: tuple[Extent, ...] = shape
    if annotation.view is not None and annotation.view.valid_shape is not None:
        valid = tuple(e if isinstance(e := extent(v), int) else None for v in annotation.view.valid_shape)
    memory = {} if annotation.memory is None else {"memory": annotation.memory}
    return TileType(
        static_shape(shape),
        annotation.dtype,
        valid,
        memref=None if annotation.memref is None else annotation.memref.placed,
        **memory,
    )


def extent(value: Any) -> Extent:
    """Return one extent of an annotation: an int, a symbol, a formula over symbols, or None for unknown."""
    if isinstance(value, bool) or not isinstance(value, (int, ann.DynExpr, Expr, type(None))):
        help = 'M = pl.dynamic("M") names an extent that the caller decides'
        raise AnnotationError(f"an extent is an integer or a pl.dynamic name, got {value!r}", help=help)
    if isinstance(value, int) and value < 0:
        help = 'M = pl.dynamic("M") names an extent that the caller decides'
        raise AnnotationError(f"an extent cannot be negative, got {value}", help=help)
    if isinstance(value, int) and (reason := objection(value, INDEX)):
        raise AnnotationError(f"no extent can be {show_number(value)}", help=reason)
    if isinstance(value, ann.DynExpr):
        return as_extent(symbolic(value))
    if isinstance(value, Const):
        return int(value.value)
    return as_extent(value) if isinstance(value, Expr) else value


def evaluated(annotation: Any, resolver: Resolver) -> Any:
    """Return an annotation given as text (PEP 563), perhaps quoted besides, as the object it names."""
    for _ in range(2):
        annotation = _named(annotation, resolver) if isinstance(annotation, str) else annotation
    return annotation


def _named(annotation: str, resolver: Resolver) -> Any:
    names = _Names(resolver)
    try:
        tree = names.visit(parsed_expression(annotation.strip()))
        code = code_of(tree, "<annotation>")
        return eval(code, {"__builtins__": {}}, names.values)  # noqa: S307 - the module's own annotation, as Python evaluates it
    except DriftError:
        raise
    except Exception as error:
        help = "an annotation is evaluated where the function is defined, for example pl.Tensor[[64, 64], pl.FP32]"
        raise AnnotationError(f"cannot evaluate the annotation `{annotation}`: {error}", help=help) from None


_SELF_CONTAINED = ("tilewright", "builtins")


class _Names(ast.NodeTransformer):
    """Puts what names, their attributes and their items stand for in place of them, read through a resolver."""

    def __init__(self, resolver: Resolver) -> None:
        self.resolver = resolver
        self.values: dict[str, Any] = {}

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """Look a name up."""
        try:
            return self._put(self.resolver.lookup(node.id))
        except KeyError:
            raise NameError(f"name '{node.id}' is not defined") from None

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        """Take an attribute of something that is known by now."""
        base = self._base(node.value)
        if isinstance(base, ast.Name):
            return self._put(self.resolver.attribute(self.values[base.id], node.attr))
        return ast.copy_location(ast.Attribute(base, node.attr, node.ctx), node)

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        """Take an item out of a container from outside; subscripts of types are theirs to read."""
        base = self._base(node.value)
        owner = self.values[base.id] if isinstance(base, ast.Name) else None
        if isinstance(node.slice, ast.Constant) and self.resolver.knows(owner):
            return self._put(self.resolver.item(owner, node.slice.value))
        return ast.copy_location(ast.Subscript(base, self.visit(node.slice), node.ctx), node)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """Let the language's own functions and Python's builtins be called, and refuse what may read anything."""
        function = self.visit(node.func)
        callee = self.values[function.id] if isinstance(function, ast.Name) else None
        if str(getattr(callee, "__module__", "")).partition(".")[0] not in _SELF_CONTAINED:
            raise TypeError(f"`{ast.unparse(node)}` runs while the annotation is read: give its result a name outside")
        keywords = [ast.copy_location(ast.keyword(each.arg, self.visit(each.value)), each) for each in node.keywords]
        return ast.copy_location(ast.Call(function, [self.visit(arg) for arg in node.args], keywords), node)

    def _base(self, node: ast.expr) -> ast.expr:
        self.resolver.rest()
        return self.visit(node)

    def _put(self, value: Any) -> ast.Name:
        name = f"value_{len(self.values)}"
        self.values[name] = value
        return ast.Name(name, ast.Load(), lineno=1, col_offset=0)
