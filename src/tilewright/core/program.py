"""Programs: named functions and how they are called."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from typing import ClassVar

from tilewright.core.enums import FunctionType, Level, ParamDirection, Role, SplitMode
from tilewright.core.expr import Attribute, GlobalVar, Symbol, Var
from tilewright.core.node import node
from tilewright.core.stmt import EMPTY, Attributes, SeqStmts
from tilewright.core.types import TensorType, Type
from tilewright.source import UNKNOWN, Span


class Printable:
    """A node that can show itself as Python; the printer signs in here, being a layer above."""

    __slots__ = ()
    printer: ClassVar[Callable[..., str]]

    def as_python(self, prefix: str = "pl", *, concise: bool = False) -> str:
        """Return the node as Python text that `pl.parse` reads back; `concise` leaves out types of locals."""
        return type(self).printer(self, prefix, concise=concise)

    def __str__(self) -> str:
        return self.as_python()


@node
class Function(Printable):
    """A function of the IR. A pass never changes one: it returns another."""

    name: str
    params: tuple[Var, ...] = ()
    return_types: tuple[Type, ...] = ()
    body: SeqStmts = EMPTY
    span: Span = UNKNOWN
    func_type: FunctionType = FunctionType.Opaque
    param_directions: tuple[ParamDirection, ...] = ()
    level: Level | None = None
    role: Role | None = None
    attrs: Attributes = field(default_factory=dict[str, Attribute])
    callees: tuple[Function, ...] = ()
    """Free functions it was written against; a program that takes this function in takes them too."""

    def __post_init__(self) -> None:
        """Parameters without a stated direction are inputs."""
        missing = len(self.params) - len(self.param_directions)
        if missing:
            directions = self.param_directions + (ParamDirection.In,) * missing
            object.__setattr__(self, "param_directions", directions)

    @property
    def split(self) -> SplitMode:
        """How the kernel is split between vector lanes."""
        mode = self.attrs.get("split", SplitMode.NONE)
        return mode if isinstance(mode, SplitMode) else SplitMode.NONE

    @property
    def symbols(self) -> Mapping[str, tuple[int, int]]:
        """Each symbol that a parameter's extent binds, with the parameter and axis that carry it first."""
        found: dict[str, tuple[int, int]] = {}
        for position, param in enumerate(self.params):
            shape = param.type.shape if isinstance(param.type, TensorType) else ()
            for axis, extent in enumerate(shape):
                if isinstance(extent, Symbol):
                    found.setdefault(extent.name, (position, axis))
        return found

    def with_body(self, body: SeqStmts) -> Function:
        """Return this function with another body."""
        return self if body is self.body else replace(self, body=body)


@node
class Program(Printable):
    """The functions that are compiled together, in the order they were written."""

    name: str
    function_list: tuple[Function, ...]
    span: Span = UNKNOWN

    @property
    def functions(self) -> Mapping[GlobalVar, Function]:
        """The functions by global name, sorted."""
        return {GlobalVar(f.name): f for f in sorted(self.function_list, key=lambda f: f.name)}

    def get_function(self, name: str) -> Function | None:
        """Return the function called `name`, or None."""
        return next((f for f in self.function_list if f.name == name), None)

    def __getitem__(self, name: str) -> Function:
        found = self.get_function(name)
        if found is None:
            raise KeyError(f"program {self.name} has no function {name!r}; it has {self.function_names}")
        return found

    @property
    def function_names(self) -> list[str]:
        """The names of the functions, in the order they were written."""
        return [f.name for f in self.function_list]

    def get_global_var(self, name: str) -> GlobalVar | None:
        """Return the global name of a function, or None."""
        return GlobalVar(name) if self.get_function(name) else None

    def with_functions(self, functions: Sequence[Function]) -> Program:
        """Return this program with other functions."""
        return replace(self, function_list=tuple(functions))

    @property
    def entries(self) -> tuple[Function, ...]:
        """The functions a caller can start: orchestration functions, or the only function there is."""
        found = tuple(f for f in self.function_list if f.func_type is FunctionType.Orchestration)
        if found or len(self.function_list) != 1:
            return found
        return self.function_list
