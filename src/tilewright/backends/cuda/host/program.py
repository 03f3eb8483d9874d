"""Programs: every entry of a program as a host function, and the kernels that it starts."""

from __future__ import annotations

from dataclasses import replace

from tilewright.backends.cpu.host.options import Options
from tilewright.backends.cpu.host.program import ProgramEmitter
from tilewright.backends.cuda.host import launch_code
from tilewright.backends.cuda.host.handlers import HANDLERS
from tilewright.backends.cuda.host.inner_reads import read_inside
from tilewright.backends.cuda.host.kernels import Kernels
from tilewright.backends.cuda.host.launch_code import REFUSED
from tilewright.backends.cuda.host.regions import is_kernel
from tilewright.backends.cuda.host.row_grids import in_rows
from tilewright.backends.cuda.host.steps import in_steps
from tilewright.backends.cuda.ttir import blocks as blocks
from tilewright.backends.cuda.ttir import control as control
from tilewright.backends.cuda.ttir import copies as copies
from tilewright.backends.cuda.ttir import loads as loads
from tilewright.backends.cuda.ttir import memory as memory
from tilewright.backends.cuda.ttir import normal as normal
from tilewright.backends.cuda.ttir import scalars as scalars
from tilewright.backends.cuda.ttir import stores as stores
from tilewright.backends.cuda.ttir import temporaries as temporaries
from tilewright.backends.cuda.ttir import tensor_views as tensor_views
from tilewright.backends.cuda.ttir import tiles as tiles
from tilewright.backends.cuda.ttir import views as views
from tilewright.backends.cuda.ttir.text import ANY_ROOM
from tilewright.core.enums import FunctionType
from tilewright.core.expr import Expr, GlobalVar, Invoke, TupleGetItem, Var
from tilewright.core.program import Function, Program
from tilewright.core.stmt import AssignStmt, ReturnStmt, SeqStmts
from tilewright.core.types import TensorType, TupleType
from tilewright.native.llvm import spelled
from tilewright.native.target import Target


class LaunchingProgram(ProgramEmitter, Kernels):
    """A program being written: host functions for a processor, and kernels for a GPU."""

    def __init__(self, program: Program, target: Target, options: Options, shared: int = ANY_ROOM) -> None:
        super().__init__(read_inside(in_rows(in_steps(started(program)))), target, options)
        self.shared = shared
        self.handlers, self.schedule = HANDLERS, options.schedule
        self.entries = 0

    def entry(self, function: Function) -> str:
        """Write a function that is called from outside; return its symbol."""
        own = self.program[function.name]
        results = zip(own.return_types, self.returned[own.name], strict=True)
        keeps = any(isinstance(type_, TensorType) and position is None for type_, position in results)
        launch_code.add_to(self.module)
        name, inner = f"start_{spelled(own.name)}", super().entry(own)
        note = self.note(REFUSED, own.span)
        self.module.functions.append(launch_code.started(name, inner, self.entries, note, keeps=keeps))
        self.entries += 1
        return name


def started(program: Program) -> Program:
    """Return a program whose entries start kernels, and are none themselves."""
    functions = list(program.function_list)
    for entry in program.entries:
        if is_kernel(entry):
            kernel = replace(entry, name=_free(f"{entry.name}_kernel", program))
            functions = [f for f in functions if f is not entry] + [kernel, _starting(entry, kernel)]
    return program.with_functions(functions)


def _starting(entry: Function, kernel: Function) -> Function:
    """Return an entry that calls its kernel and gives back what that does."""
    several = len(entry.return_types) != 1
    type_ = TupleType(entry.return_types) if several else entry.return_types[0]
    result = Var("result", type_, entry.span)
    call = Invoke(GlobalVar(kernel.name), entry.params, type_, entry.span)
    given: list[Expr] = [result]
    if several:
        given = [TupleGetItem(result, k, each, entry.span) for k, each in enumerate(entry.return_types)]
    body = SeqStmts((AssignStmt(result, call, entry.span), ReturnStmt(tuple(given), entry.span)))
    return replace(entry, body=body, func_type=FunctionType.Orchestration)


def _free(name: str, program: Program) -> str:
    while name in program.function_names:
        name += "_"
    return name
