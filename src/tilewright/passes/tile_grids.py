"""Tile grids: loops around calls of kernels that compute a tile each, what those cut, and in which other steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tilewright.core.expr import Invoke, Var, integer
from tilewright.core.program import Function
from tilewright.core.rewrite import loop_bounds
from tilewright.core.stmt import ForStmt, SeqStmts
from tilewright.core.types import Extent, TensorType, Type
from tilewright.core.visitor import variables
from tilewright.passes.launches import hands_on
from tilewright.passes.spans import Span, span_of
from tilewright.passes.tile_axes import Axis, Class, Cut, TileAxes


class TileGrid:
    """Loops over tiles, the kernels that compute one of them, and other steps for the loops."""

    def __init__(self, loops: Sequence[ForStmt], calls: Sequence[Invoke], functions: Sequence[Function]) -> None:
        self.loops, self.calls, self.functions = loops, calls, functions
        self.axes = [TileAxes(function.body) for function in functions]
        self.spans: dict[Var, Span] = {}
        self.steps: dict[Var, int] = {}

    @property
    def inside_out(self) -> list[ForStmt]:
        """The loops as they are best nested, the innermost first."""
        return [*reversed(self.loops)]

    @property
    def names(self) -> str:
        """The kernels by name."""
        return ", ".join(dict.fromkeys(function.name for function in self.functions))

    @property
    def changes(self) -> list[str]:
        """The steps that become others."""
        pairs = [(var, step, self.spans[var].step) for var, step in self.steps.items()]
        return [f"{var.name_hint} by {step} instead of {before}" for var, step, before in pairs if step != before]

    def loops_of(self, number: int) -> Mapping[Var, ForStmt]:
        """Return the loops inside one of the kernels that take other steps, by their variables."""
        return {}

    def cut_by(self, loop: ForStmt) -> list[list[Class]]:
        """Return what a loop cuts in each kernel, nothing at all where it does something else there as well."""
        classes = [self._classes(number, loop) for number in range(len(self.calls))]
        return classes if all(classes) else []

    def _classes(self, number: int, loop: ForStmt) -> list[Class]:
        """Return what a loop cuts in one of the kernels, nothing where it does something else there as well."""
        made, function, axes = self.calls[number], self.functions[number], self.axes[number]
        params = [p for p, arg in zip(function.params, made.args, strict=True) if loop.loop_var in variables([arg])]
        if len(params) != 1 or loop.loop_var not in made.args or params[0] in axes.fixed or not axes.stores:
            return []
        (param,) = params
        found = axes.cut_by(param)
        sound = all(not (c.is_fixed or c.is_folded) and c.begins_at(param) for c in found)
        stored = all(any(cut.offset is param for cut in cuts) for cuts in axes.stores)
        return found if sound and stored else []

    def span_of(self, loop: ForStmt, classes: Sequence[Sequence[Class]]) -> Span | None:
        """Return what a loop that cuts classes covers of the tensors that the kernels are called with."""
        extents: list[Extent] = []
        cuts: list[Cut] = []
        for made, function, found in zip(self.calls, self.functions, classes, strict=True):
            given = {param: arg.type for param, arg in zip(function.params, made.args, strict=True)}
            own = [cut for each in found for cut in each.cuts]
            extents += [_extent(given.get(cut.tensor, cut.tensor.type), cut.axis) for cut in own]
            cuts += [replace(cut, offset=loop.loop_var) for cut in own]
        span = span_of(loop, cuts, extents)
        alike = span is not None and all(each.sizes == {span.step} for found in classes for each in found)
        return span if alike else None

    def sizes(self, number: int) -> dict[Axis, int]:
        """Return the axes of the tiles of one of the kernels that become longer."""
        pairs = self.params(number).items()
        found = [(each, self.steps[var]) for param, var in pairs for each in self.axes[number].cut_by(param)]
        return {axis: step for each, step in found for axis in each.axes}

    def params(self, number: int) -> dict[Var, Var]:
        """Return the parameters of one of the kernels that stand for variables of loops with other steps."""
        given = zip(self.functions[number].params, self.calls[number].args, strict=True)
        return {param: arg for param, arg in given if isinstance(arg, Var) and arg in self.steps}

    def stepped(self, named: Var, var: Var) -> Var:
        """Return a new variable that takes the values of a loop's variable in other steps."""
        span = self.spans[var]
        reach = loop_bounds(integer(span.start), span.stop, integer(self.steps[var]))
        return Var(named.name_hint, named.type, named.span, reach)


def nest(stmt: ForStmt) -> tuple[list[ForStmt], SeqStmts]:
    """Return loops around each other whose turns hand nothing on, and what the innermost does."""
    loops, body = list[ForStmt](), SeqStmts((stmt,))
    while len(body) == 1 and isinstance(inner := body.stmts[0], ForStmt) and not hands_on(inner):
        loops.append(inner)
        body = inner.body
    return loops, body


def _extent(type_: Type | None, axis: int) -> Extent:
    return type_.shape[axis] if isinstance(type_, TensorType) and type_.valid == type_.shape else None
