"""Programs: named functions and how they are called."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace

from tilewright.core.enums import FunctionType, Level, ParamDirection, Role, SplitMode
from tilewright.core.expr import Attribute, GlobalVar, Symbol, Var
from tilewright.core.extents import symbols_in
from tilewright.core.node import node
from tilewright.core.printer import INDENT, Printable, Printer
from tilewright.core.solving import Solution, located, solved
from tilewright.core.stmt import EMPTY, Attributes, SeqStmts
from tilewright.core.types import TensorType, TileType, Type
from tilewright.core.visitor import expressions, invocations, statements, types_of
from tilewright.source import UNKNOWN, Span

TURNED, STEPPED = "turned", "stepped"
"""The attribute that names the parameters whose last two axes are swapped."""


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
    auto_scope: bool = True
    """Whether the order of its tasks follows from what they read and write, without it saying so."""
    external_source: str = ""
    """The file that holds its code, for one written in another language."""
    callees: tuple[Function, ...] = ()
    """Free functions it was written against; a program that takes this function in takes them too."""

    def __post_init__(self) -> None:
        """Parameters without a stated direction are inputs."""
        missing = len(self.params) - len(self.param_directions)
        if missing:
            directions = self.param_directions + (ParamDirection.In,) * missing
            object.__setattr__(self, "param_directions", directions)

    @property
    def is_sub_worker(self) -> bool:
        """Whether Python itself runs it, for a host function."""
        return self.level is Level.HOST and self.role is Role.SubWorker

    @property
    def split(self) -> SplitMode:
        """How the kernel is split between vector lanes."""
        mode = self.attrs.get("split", SplitMode.NONE)
        return mode if isinstance(mode, SplitMode) else SplitMode.NONE

    @property
    def turned(self) -> tuple[str, ...]:
        """The parameters whose last two axes are swapped: callers have tensors that lie on their side."""
        return tuple(str(self.attrs.get(TURNED, "")).split())

    @property
    def stepped(self) -> Mapping[str, int]:
        """The parameters whose neighbours along the last axis lie so many elements apart, as those of `x[:, ::2]`."""
        pairs = (each.split(":") for each in str(self.attrs.get(STEPPED, "")).split())
        return {name: int(step) for name, step in pairs}

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

    @property
    def solutions(self) -> Mapping[str, Solution]:
        """Each symbol that stands in formulas only, as the argument of one of them tells it."""
        return solved(located([param.type for param in self.params]), self.symbols)

    def with_body(self, body: SeqStmts) -> Function:
        """Return this function with another body."""
        return self if body is self.body else replace(self, body=body)

    def mentioned(self) -> Iterator[str]:
        """Yield the name of every symbol in the function, as often as it stands there."""
        types = [*(param.type for param in self.params), *self.return_types]
        for stmt in statements(self.body):
            types += types_of(stmt)
            yield from (expr.name for expr in expressions(stmt) if isinstance(expr, Symbol))
        for type_ in types:
            if isinstance(type_, (TensorType, TileType)):
                yield from (name for extent in (*type_.shape, *type_.valid) for name in symbols_in(extent))

    def printed(self, printer: Printer) -> Iterator[str]:
        """Yield symbols, unless a program has declared them, decorator, signature and body."""
        if not printer.in_program:
            yield from printer.declared(self.mentioned())
        printer.begin_function()
        signature = f"({', '.join(self._printed_params(printer))}){self._printed_returns(printer)}"
        said = {name: value for name, value in self.attrs.items() if value is not SplitMode.NONE}
        body = [f"{printer.pl}.func_attr({printer.attributes(said)})"] if said else []
        body += printer.body(self.body)
        yield self._printed_decorator(printer)
        yield f"def {self.name}{signature}:"
        yield from (INDENT + line for line in (body or ["..." if self.external_source else "pass"]))

    def _printed_params(self, printer: Printer) -> Iterator[str]:
        yield from ["self"] if printer.in_program else []
        for param, direction in zip(self.params, self.param_directions, strict=True):
            type_ = printer.bounded_type(param)
            wrapped = type_ if direction is ParamDirection.In else f"{printer.pl}.{direction.name}[{type_}]"
            yield f"{printer.name(param)}: {wrapped}"

    def _printed_returns(self, printer: Printer) -> str:
        returns = ", ".join(map(printer.type, self.return_types))
        several = f"tuple[{returns}]" if len(self.return_types) > 1 else returns
        return f" -> {several}" if returns else ""

    def _printed_decorator(self, printer: Printer) -> str:
        kind = None if self.func_type is FunctionType.Opaque else self.func_type
        stated = {"type": kind, "level": self.level, "role": self.role}
        options = [f"{name}={printer.attribute(value)}" for name, value in stated.items() if value]
        options += [] if self.auto_scope else ["auto_scope=False"]
        options += [f"external_source={self.external_source!r}"] if self.external_source else []
        return f"@{printer.pl}.function" + (f"({', '.join(options)})" if options else "")


@node
class Program(Printable):
    """The functions that are compiled together, in the order they were written."""

    name: str
    function_list: tuple[Function, ...]
    span: Span = UNKNOWN
    again: Callable[[], Program] | None = None
    """Reads the text that it was read from once more."""

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
        """The functions a caller can start: those of the host, else orchestration, or the only function there is."""
        hosts = tuple(f for f in self.function_list if f.level is Level.HOST and f.role is not Role.SubWorker)
        if hosts:
            return hosts
        found = tuple(f for f in self.function_list if f.func_type is FunctionType.Orchestration)
        if found or len(self.function_list) != 1:
            return found
        return self.function_list

    @property
    def hosts(self) -> tuple[Function, ...]:
        """The entries that run once for all ranks."""
        return tuple(function for function in self.entries if function.level is Level.HOST)

    def printed(self, printer: Printer) -> Iterator[str]:
        """Yield header, symbols and class."""
        printer.in_program = True
        yield from (f"# tilewright.program: {self.name}", f"import tilewright.language as {printer.pl}", "")
        yield from printer.declared(name for function in self.function_list for name in function.mentioned())
        yield from (f"@{printer.pl}.program", f"class {self.name}:")
        for function in self._callees_first():
            yield from (INDENT + line if line else "" for line in function.printed(printer))
            yield ""

    def _callees_first(self) -> tuple[Function, ...]:
        """Return the functions in the order they are printed: what a function calls before it."""
        found: dict[str, Function] = {}

        def add(function: Function, active: frozenset[str]) -> None:
            if function.name in found or function.name in active:
                return
            for call in invocations(function.body):
                if (callee := self.get_function(call.op.name)) is not None:
                    add(callee, active | {function.name})
            found[function.name] = function

        for function in self.function_list:
            add(function, frozenset())
        return tuple(found.values())
