"""Evaluating: what an expression is worth in the function being run, each op by its declared meaning."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import field, replace
from functools import partial
from typing import Any, TypeAlias, TypeVar

from tilewright.core.build import arguments
from tilewright.core.coroutines import Coroutine, in_turns
from tilewright.core.enums import TensorLayout
from tilewright.core.expr import Absent, Call, Const, Expr, Invoke, MakeTuple, Submit, Symbol, TupleGetItem, Var
from tilewright.core.grid import BARRIER, CURRENT, Block
from tilewright.core.program import Function, Program
from tilewright.core.region import Region
from tilewright.core.types import Extent, TensorType
from tilewright.errors import ExecutionError, InternalError, KernelError
from tilewright.interpret.skipped import results_of
from tilewright.passes.barriers import has_barrier
from tilewright.passes.outline import author_of
from tilewright.records import mutable
from tilewright.source import Span

T = TypeVar("T")

Value: TypeAlias = Any
"""A region for tensors and tiles, a Python number for scalars, an array for arrays, a tuple for several."""


NO_MEMORY = "there is not enough memory for this\nmake tiles and tensors smaller, or work on a part at a time"


@mutable
class Frame:
    """One function being run: its variables and symbols."""

    function: Function
    values: dict[Var, Value] = field(default_factory=dict[Var, Value])
    symbols: Mapping[str, Extent] = field(default_factory=dict[str, Extent])


class Evaluator(ABC):
    """The expressions of one program's functions."""

    def __init__(self, program: Program) -> None:
        self.functions = {f.name: f for f in program.function_list}
        self.tasks = itertools.count()

    @abstractmethod
    def run(self, name: str, args: Sequence[Value]) -> tuple[Value, ...]:
        """Return what a function returns for `args`; tensors are written in place."""

    def author(self, frame: Frame) -> str:
        """Return the function that its author wrote, of which a kernel written in place is a part."""
        return author_of(frame.function.name, self.functions)

    def value(self, frame: Frame, expr: Expr) -> Value:
        """Return what an expression is worth."""
        match expr:
            case Var():
                return self._variable(frame, expr)
            case Const():
                return expr.value
            case Symbol():
                return frame.symbols[expr.name]
            case MakeTuple():
                return tuple(self.value(frame, e) for e in expr.elements)
            case TupleGetItem():
                return self.value(frame, expr.value)[expr.index]
            case Call():
                return self._call(frame, expr)
            case Invoke():
                return self._invoke(frame, expr)
            case Submit():
                return self._submit(frame, expr)
            case Absent():
                return None
            case _:
                raise InternalError(f"no meaning for {type(expr).__name__}")

    def _variable(self, frame: Frame, var: Var) -> Value:
        if var not in frame.values:
            raise ExecutionError(
                f"'{var.name_hint}' has no value here: the loop that binds it did not run", spans=[var.span]
            )
        return frame.values[var]

    def _call(self, frame: Frame, call: Call) -> Value:
        bound = {
            name: _operand(value, self.value(frame, value)) if isinstance(value, Expr) else value
            for name, value in arguments(call).items()
        }
        try:
            result = self.evaluate(call, bound)
            return _traced(result, call.span) if isinstance(result, Region) else result
        except KernelError as error:
            _name_blamed(error, call)
            error.locate([call.span])
            error.function = error.function or self.author(frame)
            raise
        except ZeroDivisionError:
            raise _failed("division by zero", self.author(frame), call) from None
        except MemoryError:
            raise _failed(NO_MEMORY, self.author(frame), call) from None
        except InternalError:
            raise
        except Exception as error:  # an op's meaning refuses what its type rule let through
            message = f"{call.span}: in kernel `{frame.function.name}`: `{call.op.name}` cannot be evaluated"
            raise InternalError(f"{message}: {type(error).__name__}: {error}") from error

    def evaluate(self, call: Call, bound: Mapping[str, Value]) -> Value:
        """Return what an op gives for its arguments."""
        return call.op.spec.evaluate(call.type, **bound)

    def _invoke(self, frame: Frame, call: Invoke) -> Value:
        results = self.invoked(frame, call)
        return results[0] if len(results) == 1 else results

    def invoked(self, frame: Frame, call: Invoke) -> tuple[Value, ...]:
        """Return all that a function gives which is called."""
        return self._results(frame, call) if call.device is None else self.dispatch(frame, call)

    def dispatch(self, frame: Frame, call: Invoke) -> tuple[Value, ...]:
        """Return what a function gives that a rank is to run."""
        raise ExecutionError("functions are dispatched to ranks by host functions", spans=[call.span])

    def _results(self, frame: Frame, call: Invoke | Submit) -> tuple[Value, ...]:
        return self.run(call.op.name, [self.value(frame, arg) for arg in call.args])

    def _submit(self, frame: Frame, call: Submit) -> tuple[Value, ...]:
        results: tuple[Value, ...] = ()
        if call.predicate is not None and not self.value(frame, call.predicate):
            results = results_of(self.functions, call, [self.value(frame, arg) for arg in call.args])
        elif call.core_num is None:
            results = self._results(frame, call)
        else:
            together = has_barrier(self.functions, self.functions[call.op.name].body)
            given = self.each(self.value(frame, call.core_num), together, lambda _: self._results(frame, call))
            *_, results = ((), *given)
        return (*results, next(self.tasks))

    def check_arguments(self, frame: Frame) -> None:
        """Raise when an argument contradicts the signature: its bounds, a symbol or a formula."""
        for param in frame.function.params:
            if param.bounds is not None and not param.bounds[0] <= frame.values[param] <= param.bounds[1]:
                low, high = param.bounds
                message = f"`{param.name_hint}` is {frame.values[param]}, outside its bounds {low} to {high}"
                raise ExecutionError(message, spans=[param.span])
            if not isinstance(param.type, TensorType):
                continue
            for axis, (extent, have) in enumerate(zip(param.type.shape, frame.values[param].data.shape, strict=True)):
                if isinstance(extent, Expr) and self.value(frame, extent) != have:
                    message = (
                        f"axis {axis} of `{param.name_hint}` is {have}, but {extent} is {self.value(frame, extent)}"
                    )
                    raise ExecutionError(message, spans=[param.span])

    def each(self, count: int, together: bool, run: Callable[[int], T]) -> Iterator[T]:
        """Yield what each block of a grid gives: one after the other, or `together`, from barrier to barrier."""
        if together:
            yield from in_rounds(count, run)
            return
        with closing(self.blocks(count)) as blocks:  # where one fails, it is the current one no longer
            for _ in blocks:
                yield run(CURRENT.get().index)

    def in_order(self, indices: range) -> Sequence[int]:
        """Return in which order turns and blocks run that do not depend on each other."""
        return indices

    def blocks(self, count: int) -> Generator[None]:
        """Let each block of a grid be the current one, one after the other."""
        for index in self.in_order(range(count)):
            token = CURRENT.set(Block(index, count))
            try:
                yield
            finally:
                CURRENT.reset(token)


def _operand(expr: Expr, value: Value) -> Value:
    """Return an operand; a tensor whose memory is in an order of its own says so."""
    if isinstance(expr.type, TensorType) and expr.type.layout is not TensorLayout.ND:
        return replace(value, layout=expr.type.layout)
    return value


def _traced(result: Region, span: Span) -> Region:
    """Return what an op gives, with the place where undefined elements came into it if that is here."""
    if result.shadow is None or result.origin.is_known or result.is_defined:
        return result
    return replace(result, origin=span)


def _name_blamed(error: KernelError, call: Call) -> None:
    """Let a message call the operands that it blames as the kernel does, no more by the parameters of their op."""
    given = arguments(call) if error.blame and isinstance(error, ExecutionError) else {}
    for name in error.blame if given else ():
        own, theirs = f"`{name}`", f"`{given[name]}`"
        error.message, error.hint = error.message.replace(own, theirs), error.hint.replace(own, theirs)


def _failed(text: str, author: str, call: Call) -> ExecutionError:
    error = ExecutionError(text, spans=[call.span])
    error.function = author
    return error


def in_rounds(count: int, run: Callable[[int], T]) -> list[T]:
    """Return what blocks give that run from barrier to barrier."""
    return in_turns([partial(_block, Block(index, count), run) for index in range(count)])


def _block(block: Block, run: Callable[[int], T], coroutine: Coroutine[T]) -> T:
    CURRENT.set(block)
    BARRIER.set(coroutine.pause)
    return run(block.index)
