"""The verifier: what the text of a module decides before anything runs it.

Each op is held to its form and its rule, each region to how it must end, each call to the function it names. What
fails is raised at the op that breaks the rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter

from tilewright.errors import KernelError
from tilewright.frontend.tracebacks import brief
from tilewright.pto.architectures import architectures
from tilewright.pto.asked_words import refuse_words
from tilewright.pto.elements import refuse_elements
from tilewright.pto.entries import ENTRY, LAUNCH, is_entry, launched, refuse_crowd, refuse_entry, refuse_outside
from tilewright.pto.errors import PtoOperandError, PtoRecursionError, PtoReturnError, PtoUndeclaredValueError
from tilewright.pto.machine.cores import kinds_said
from tilewright.pto.memrefs import is_memref
from tilewright.pto.module import Constants, Func, Module, Op, Region, SymbolRef, Value
from tilewright.pto.ops.registry import OPS
from tilewright.pto.pipe_laws import MET, refuse_pipes
from tilewright.pto.scopes import refuse_escapes
from tilewright.pto.text.form import Syntax
from tilewright.pto.text.kinds import counted
from tilewright.pto.text.rules import any_packed, refuse_counts, refuse_kinds, refuse_packed, refuse_slots
from tilewright.pto.text.spellings import missing
from tilewright.pto.text.suggestions import nearest
from tilewright.pto.text.typetext import brief_text
from tilewright.pto.types import Type

ENTRY_MARKS = ("pto.kernel", "pto.entry", "pto.aicore")
"""The attributes that make a function an entry."""


@brief
def verify(module: Module, target: str = "", *, is_portable: bool = False) -> None:
    """Raise a located `KernelError` for the first thing in `module` that cannot be.

    Rules are those of the architecture that a module names in `pto.target_arch`, or else of `target`; A2/A3 where
    nobody says. What is portable runs here alone: it is held to what PTO means, and to no machine.
    """
    calls: dict[Func, dict[Func, Op]] = {}
    archs = dict(architectures(module, target))
    kinds, every = dict(kinds_said(module)), {each.name: each for each in archs if each.body is not None}
    for func, visible in module.scopes():
        constants = Constants()
        constants.arch, constants.said = ("", "") if is_portable else archs[func]
        constants.given = func.arguments
        checker = _Checker(visible, constants)
        checker.function(func)
        if constants.arch:
            refuse_escapes(func)
        calls[func] = checker.calls
        if checker.has_pipes:
            refuse_pipes(func, kinds[func], every, constants.arch)
    _refuse_recursion(calls)


def _refuse_recursion(calls: dict[Func, dict[Func, Op]]) -> None:
    try:
        TopologicalSorter({func: callees.keys() for func, callees in calls.items()}).prepare()
    except CycleError as error:
        cycle: list[Func] = list(reversed(error.args[1]))
        path = " calls ".join(f"`@{func.name}`" for func in cycle)
        raise PtoRecursionError(path, spans=(calls[cycle[0]][cycle[1]].span,)) from None


@dataclass(slots=True)
class _Checker:
    """The verifier inside one function."""

    functions: dict[str, Func]
    _constants: Constants
    calls: dict[Func, Op] = field(default_factory=dict[Func, Op])
    has_pipes: bool = False
    """Whether some op is about what cores hand each other."""
    _is_entry: bool = False
    """Whether work items run it."""
    _sections: set[str] = field(default_factory=set[str])
    _known: set[tuple[str | int, ...]] = field(default_factory=set[tuple["str | int", ...]])
    """Ops with the types that they were legal with: most of a text says the same of other values."""
    _has_memrefs: bool = False
    """Whether some value so far is a memref."""
    _has_packed: bool = False
    """Whether some value so far is packed; most functions have none, and no op of theirs need be asked."""

    def function(self, func: Func) -> None:
        mark = next((mark for mark in ENTRY_MARKS if mark in func.attributes), None)
        if mark and func.results:
            message = f"`@{func.name}` is an entry (`{mark}`) and must return nothing"
            raise PtoReturnError(message, spans=(func.span,), help="write results through a pointer")
        refuse_entry(func)
        self._is_entry = is_entry(func)
        if func.body is not None:
            self._has_packed = any_packed(func.arguments)
            self._has_memrefs = any(is_memref(value.type) for value in func.arguments)
            self._region(func.body, "func.return", func.results, func)

    def _region(self, region: Region, ending: str, types: Sequence[Type], owner: Func | Op) -> None:
        """Check the ops of a region, which `ending` ends with values of `types`; "" is no ending at all."""
        last = region.ops[-1] if region.ops else None
        self._has_packed = self._has_packed or any_packed(region.arguments)
        for op in region.ops:
            self._op(op)
            if op.name in _ENDINGS and (op is not last or op.name != ending):
                where = "before other ops" if op.name == ending else "here"
                raise PtoReturnError(f"`{_short(op)}` cannot stand {where}", spans=(op.span,), help=_ENDINGS[op.name])
        if last is None or last.name not in _ENDINGS:
            self._refuse_open_end(region, ending, types, owner)
            return
        values = last.operands[1:] if last.name == "scf.condition" else last.operands
        _refuse_difference(last, f"`{_short(last)}`", [value.type for value in values], types)

    def _refuse_open_end(self, region: Region, ending: str, types: Sequence[Type], owner: Func | Op) -> None:
        if ending and (types or ending != "scf.yield"):
            name = f"@{owner.name}" if isinstance(owner, Func) else owner.name
            span = region.ops[-1].span if region.ops else owner.span
            short = ending.removeprefix("func.")
            raise PtoReturnError(f"`{name}` must end with `{short}`", spans=(span,), help=_ENDINGS[ending])

    def _op(self, op: Op) -> None:
        declared = OPS.get(op.name)
        try:
            if declared is None:
                raise missing(op.name)
            form = declared.form
            refuse_counts(op, form)
            if (typed := _typed(op)) not in self._known:
                refuse_kinds(op, form)
                self._has_packed = self._has_packed or any_packed(op.results)
                self._known.add(typed)
            if self._has_packed and not declared.knows_packed:
                refuse_packed(op, declared.is_by_bytes)
            if form.slots:
                refuse_slots(op, form)
            if form.syntax is Syntax.FREE:
                self.has_pipes = self.has_pipes or op.name in MET
                if not self._is_entry:
                    refuse_outside(op)
            if op.attributes and declared.words:
                refuse_words(op, declared.words)
            if declared.rule is not None:
                declared.rule(op, self._constants)
            if self._constants.arch and not self._is_between_passes(op):
                if declared.law is not None:
                    declared.law(op, self._constants)
                refuse_elements(op, self._constants.arch)
        except KernelError as error:
            error.locate((op.span,), _origins(op))
            raise
        check = _Checker._launch if op.name == LAUNCH else _STRUCTURED.get(form.syntax)
        if check is not None:
            check(self, op)

    def _is_between_passes(self, op: Op) -> bool:
        """Return whether an op is on memrefs, of which no machine has rules: nobody wrote them."""
        self._has_memrefs = self._has_memrefs or any(is_memref(value.type) for value in op.results)
        return self._has_memrefs and any(is_memref(value.type) for value in op.uses)

    def _constant(self, op: Op) -> None:
        value = op.attributes.get("value")
        if isinstance(value, int):
            self._constants[op.results[0]] = value

    def _for(self, op: Op) -> None:
        inits = op.clause("iter_args") or ()
        region = op.regions[0]
        step = self._constants.get(op.operands[2], 1)
        if step <= 0:
            message = f"the step of this loop is {step}"
            raise PtoOperandError(message, spans=(op.span,), help="steps are positive")
        types = [value.type for value in inits]
        _refuse_difference(op, "the results of `scf.for`", [value.type for value in op.results], types)
        self._region(region, "scf.yield", types, op)

    def _if(self, op: Op) -> None:
        if op.results and len(op.regions) == 1:
            raise PtoReturnError("`scf.if` with results needs `else`", spans=(op.span,))
        self._sides(op)

    def _sides(self, op: Op) -> None:
        """Check regions of which one runs, and hands on the results of its op."""
        types = [value.type for value in op.results]
        for region in op.regions:
            self._region(region, "scf.yield", types, op)

    def _while(self, op: Op) -> None:
        before, after = op.regions
        types = [value.type for value in op.results]
        self._region(before, "scf.condition", types, op)
        _refuse_difference(op, "the block after `do`", [value.type for value in after.arguments], types)
        self._region(after, "scf.yield", [value.type for value in op.operands], op)

    def _scope(self, op: Op) -> None:
        if op.name.startswith("pto.section."):
            if op.name in self._sections:
                raise PtoOperandError(f"a function has one `{op.name}`", spans=(op.span,), help="join them")
            self._sections.add(op.name)
        region = op.regions[0]
        given, named = ([value.type for value in values] for values in (op.operands, region.arguments))
        _refuse_difference(op, f"the block of `{op.name}`", named, given)
        self._region(region, "", (), op)

    def _call(self, op: Op) -> None:
        callee = op.attributes["callee"]
        assert isinstance(callee, SymbolRef)
        self._callee(op, callee.name, op.operands, "call")

    def _launch(self, op: Op) -> None:
        func = self._callee(op, launched(op), op.operands[3:], "launch")
        if not is_entry(func):
            message = f"`@{func.name}` is no function that work items run"
            raise PtoOperandError(message, spans=(op.span,), help=f"add `attributes {{{ENTRY}}}` to it")
        refuse_crowd(op, func, self._constants)

    def _callee(self, op: Op, name: str, given: Sequence[Value], noun: str) -> Func:
        """Return the function of a name, which takes values of some types and gives the results of an op."""
        func = self.functions.get(name)
        if func is None:
            help = nearest(name, self.functions, "@")
            raise PtoUndeclaredValueError(f"there is no function `@{name}`", spans=(op.span,), help=help)
        self.calls.setdefault(func, op)
        takes, gives = [value.type for value in func.arguments], list(func.results)
        _refuse_difference(op, f"the {noun} of `@{name}`", [value.type for value in given], takes)
        _refuse_difference(op, f"the {noun} of `@{name}`", [value.type for value in op.results], gives, "result")
        return func


def _typed(op: Op) -> tuple[str | int, ...]:
    """Return what an op is called, and which types its values have, by identity: they live as long as the module."""
    types = [id(value.type) for value in (*op.operands, *op.results)]
    for clause in op.clauses:
        types += [id(clause.name), *[id(value.type) for value in clause.values]]
    return (op.name, len(op.operands), *types)


def _refuse_difference(op: Op, what: str, found: Sequence[Type], expected: Sequence[Type], noun: str = "value") -> None:
    """Raise where two rows of types differ."""
    if len(found) != len(expected):
        has = counted(len(found) or "no", noun)
        raise PtoReturnError(f"{what} has {has} instead of {len(expected)}", spans=(op.span,))
    for i, (a, b) in enumerate(zip(found, expected, strict=True)):
        if a != b:
            raise PtoReturnError(
                f"{what} has {brief_text(a)} where {brief_text(b)} is expected (position {i + 1})", spans=(op.span,)
            )


def _short(op: Op) -> str:
    return op.name.removeprefix("func.")


def _origins(op: Op) -> list[str]:
    """Return where the operands of `op` come from, for a message."""
    lines = {f"%{value.name}: {brief_text(value.type)} from line {value.span.line}": None for value in op.uses[:4]}
    return list(lines)


_ENDINGS = {
    "func.return": "a function ends with one `return`",
    "scf.yield": "the body of a loop or branch ends with one `scf.yield`",
    "scf.condition": "the first region of `scf.while` ends with one `scf.condition`",
}
_STRUCTURED = {
    Syntax.CONSTANT: _Checker._constant,  # pyright: ignore[reportPrivateUsage]
    Syntax.FOR: _Checker._for,  # pyright: ignore[reportPrivateUsage]
    Syntax.IF: _Checker._if,  # pyright: ignore[reportPrivateUsage]
    Syntax.WHILE: _Checker._while,  # pyright: ignore[reportPrivateUsage]
    Syntax.CALL: _Checker._call,  # pyright: ignore[reportPrivateUsage]
    Syntax.SWITCH: _Checker._sides,  # pyright: ignore[reportPrivateUsage]
    Syntax.EXECUTE: _Checker._sides,  # pyright: ignore[reportPrivateUsage]
    Syntax.REGION: _Checker._scope,  # pyright: ignore[reportPrivateUsage]
}
