"""Assembling: LLVM IR text to object code.

LLVM is loaded on first use and spoken to under one lock. The text is parsed and verified before anything else touches
it, since LLVM's code generator ends the process over what its verifier would have named.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from tilewright.errors import InternalError
from tilewright.forks import Lock
from tilewright.native.target import Target, llvm, llvm_target
from tilewright.records import record

PIPELINE = "sroa,instcombine,simplifycfg;cg2"  # a name for cache keys; on explicit vectors -O3 gains nothing
SOON, FAST = 0, 2
"""What counts: how soon the code is there, or how fast it runs. The first takes a quarter of the second's time."""

_lock = Lock()

FIRST = """
define void @doubled(ptr %x, i64 %count) nounwind {
entry:
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %next, %body ]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %body, label %done
body:
  %place = getelementptr float, ptr %x, i64 %i
  %one = load <8 x float>, ptr %place, align 4
  %two = fadd <8 x float> %one, %one
  store <8 x float> %two, ptr %place, align 4
  %next = add i64 %i, 8
  br label %head
done:
  ret void
}
"""
"""A program like many: what LLVM sets up for it, and the pages that it reads, do for those that come after."""


@record
class Assembled:
    """What became of a module: its object code, and its assembly for whoever asks."""

    text: str
    target: Target
    object: bytes

    @property
    def assembly(self) -> str:
        """The instructions as text; computed on demand."""
        return assembly(self.text, self.target)


def assemble(text: str, target: Target, level: int = FAST) -> Assembled:
    """Return the relocatable object of an IR module; InternalError shows the line that LLVM refuses."""
    with _lock:
        machine = _machine(target, level)
        return Assembled(text, target, bytes(machine.emit_object(_module(text, target, level))))


def make_ready(target: Target) -> None:
    """Have LLVM set up what the first module for a target takes, which is half as much again as it takes the next.

    Whoever finds LLVM at work or ready has nothing to do.
    """
    if _lock.acquire(blocking=False):
        try:
            if not _machine.cache_info().currsize:
                _machine(target, FAST).emit_object(_module(FIRST, target, FAST))
        finally:
            _lock.release()


def assembly(text: str, target: Target) -> str:
    """Return the assembly of an IR module."""
    with _lock:
        return str(_machine(target, FAST).emit_assembly(_module(text, target, FAST)))


def llvm_version() -> str:
    """Return the version of LLVM, as cache keys want it."""
    return ".".join(map(str, llvm().llvm_version_info))


@cache
def _machine(target: Target, level: int) -> Any:
    return llvm_target(target.triple).create_target_machine(
        cpu=target.cpu, features=target.features, opt=level, reloc="pic", codemodel="default", jit=False
    )


def _module(text: str, target: Target, level: int) -> Any:
    """Parse, verify and, for speed, lightly optimise."""
    binding, machine = llvm(), _machine(target, level)
    # before the first line and without a newline: the lines that LLVM counts stay the author's
    head = f'target datalayout = "{machine.target_data}" target triple = "{target.triple}" '
    try:
        module = binding.parse_assembly(head + text, binding.create_context())
        module.verify()
    except RuntimeError as error:
        raise InternalError(_explain(str(error), text)) from None
    if level == SOON:
        return module
    passes = binding.create_new_module_pass_manager()
    passes.add_sroa_pass()
    passes.add_instruction_combine_pass()
    passes.add_simplify_cfg_pass()
    passes.run(module, binding.create_pass_builder(machine, binding.create_pipeline_tuning_options(1)))
    return module


def _explain(error: str, text: str) -> str:
    """Return LLVM's complaint with the lines of IR it is about."""
    parsed = re.search(r"<string>:(\d+):\d+: error: (.*)", error)
    lines = text.splitlines()
    if parsed is None:  # the verifier quotes the instructions instead
        return f"LLVM refuses the generated code: {error.strip()}"
    number = int(parsed[1])
    shown = (f" {n} | {lines[n - 1]}" for n in range(max(number - 2, 1), min(number, len(lines)) + 1))
    return "\n".join([f"LLVM refuses line {number} of the generated code: {parsed[2]}", *shown])
