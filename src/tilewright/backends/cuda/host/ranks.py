"""Ranks of the host's functions: who runs among how many, the parts of peers, and signals between launches.

A window is memory of a GPU, and so is what kernels find in front of it. The host asks for what it can read itself in
place of that: eight bytes with the address of the same record, behind which the window would begin. A signal is a
kernel of one block that does nothing else, in its turn behind those before it.
"""

from __future__ import annotations

from dataclasses import replace

from tilewright.backends.cpu.emit.function import HANDLERS as PROCESSOR
from tilewright.backends.cpu.emit.function import FunctionEmitter
from tilewright.backends.cpu.emit.handlers import Bound
from tilewright.backends.cpu.emit.values import Binding
from tilewright.backends.cuda.host.capture import captured, extents
from tilewright.backends.cuda.host.launch_code import HEAD
from tilewright.backends.cuda.host.launches import launch
from tilewright.backends.cuda.ttir.kernel import Kernel
from tilewright.backends.cuda.ttir.parameters import Parameters
from tilewright.backends.cuda.ttir.text import Value
from tilewright.core.expr import Call
from tilewright.core.visitor import variables
from tilewright.native.llvm import PTR, i64


def known(e: FunctionEmitter, call: Call, bound: Bound) -> Binding:
    """Emit what the record of a window says, as the processor reads it."""
    (name,) = (each for each in ("ctx", "target") if each in bound)
    e.b.module.declare(f"declare ptr @{HEAD}(ptr)")
    seen = replace(bound[name], pointer=e.b.call(PTR, HEAD, bound[name].pointer))
    return PROCESSOR.lower(e, call, {**bound, name: seen})


def signalled(e: FunctionEmitter, call: Call, bound: Bound) -> tuple[()]:
    """Emit a signal, or a wait for one, as a kernel of one block."""
    outside = [var for var in variables(call.args) if var in e.bindings]

    def write(k: Kernel, params: Parameters, block: Value) -> None:
        k.symbols = {symbol: extents(params, [word])[0] for symbol, word in e.symbols.items()}
        for var in outside:
            k.bindings[var] = captured(k, params, e.bindings[var])
        k.value(call)

    e.flush()
    launch(e, call.op.spec.name, i64(1), write, "1", [var.name_hint for var in outside])
    return ()


OPS = {
    **{f"distributed.{name}": known for name in ("rank", "nranks", "copies", "part")},
    **{f"distributed.{name}": signalled for name in ("notify", "wait", "post", "until")},
}
