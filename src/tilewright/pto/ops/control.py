"""Control: loops, branches, calls and regions. The attribute `callee` of a call is the function."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from tilewright.core.expr import Expr, constant
from tilewright.core.types import ScalarType
from tilewright.dtypes import BOOL
from tilewright.ops.builder import known
from tilewright.pto.entries import is_entry
from tilewright.pto.errors import PtoOperandError, PtoTypeMismatchError
from tilewright.pto.machine.carrying import carried, check_step, hand_on
from tilewright.pto.machine.cores import within
from tilewright.pto.machine.machine import Machine
from tilewright.pto.machine.phases import launch
from tilewright.pto.machine.registers import regrained
from tilewright.pto.machine.threads import alone
from tilewright.pto.machine.values import Lowered, Number, Predicate
from tilewright.pto.module import Constants, Op, Region, SymbolRef, Value, cases_of
from tilewright.pto.op import declare
from tilewright.pto.text.form import Form, Layout, Syntax, Word
from tilewright.pto.types import INDEX, Scalar

_FOR = Form("iii", "x*", words={"iter_args": Word(Layout.PLAIN, "x*")}, syntax=Syntax.FOR)


_LOOP = """
(%n: f32); %r = scf.for %i = %c0 to %c8 step %c1 iter_args(%a = %n) -> (f32) {
; %b = arith.addf %a, %n : f32; scf.yield %b : f32; }
"""
_BRANCH = """
(%n: f32, %is: i1); %r = scf.if %is -> (f32) {
; %b = arith.addf %n, %n : f32; scf.yield %b : f32; } else {; scf.yield %n : f32; }
"""
_SWITCH = """
(%k: index, %n: f32); %r = scf.index_switch %k -> (f32) case 3 {
; %b = arith.addf %n, %n : f32; scf.yield %b : f32; } default {; scf.yield %n : f32; }
"""
_EXECUTE = "(%n: f32); %r = scf.execute_region -> (f32) {; %b = arith.addf %n, %n : f32; scf.yield %b : f32; }"
_WHILE = """
(%n: i32); %r = scf.while (%a = %n) : (i32) -> (i32) {
; %is = arith.cmpi slt, %a, %i100 : i32; scf.condition(%is) %a : i32; } do {
; ^bb0(%b: i32):; %d = arith.addi %b, %b : i32; scf.yield %d : i32; }
"""
_CALL = """// tilewright pto run example.pto n=0.5 out=zeros:1
module {
  func.func @twice(%x: f32) -> f32 {
    %y = arith.addf %x, %x : f32
    return %y : f32
  }
  func.func @example(%n: f32, %out: !pto.ptr<f32, gm>) {
    %c0 = arith.constant 0 : index
    %r = func.call @twice(%n) : (f32) -> f32
    pto.store_scalar %r, %out[%c0] : !pto.ptr<f32, gm>, f32
    return
  }
}
"""
_SECTION = "(%n: f32, %y: !pto.ptr<f32, gm>); {op} {; pto.store_scalar %n, %y[%c0] : !pto.ptr<f32, gm>, f32; }"
_STRICT = """
(%x: !pto.ptr<f32, ub>, %y: !pto.ptr<f32, ub>); pto.strict_vecscope(%x, %y) {
; ^bb0(%p: !pto.ptr<f32, ub>, %q: !pto.ptr<f32, ub>):
; %v = pto.vlds %p[%c0] : !pto.ptr<f32, ub> -> v64xf32; %m = pto.pset_b32 "PAT_ALL" : m32
; pto.vsts %v, %q[%c0], %m : v64xf32, !pto.ptr<f32, ub>, m32; } : (!pto.ptr<f32, ub>, !pto.ptr<f32, ub>) -> ()
"""


@declare("scf.yield", Form("x*"), example=_LOOP, means="r = 9 * n")
@declare("func.return", Form("x*"), example=_CALL, means="out[0] = 2 * n")
@declare("scf.condition", Form("bx*", syntax=Syntax.CONDITION), example=_WHILE, means="r = 2 * n")
def _hand_on(m: Machine, op: Op) -> tuple[Lowered, ...]:
    """The end of a region, and what it hands on."""
    return tuple(_carriable(m, v) for v in op.operands)


def _carriable(m: Machine, value: Value) -> Lowered:
    """Return a value as loops and branches carry it: masks of all turns have as many flags."""
    found = m.values[value]
    if not isinstance(found, Predicate) or not m.has_images:
        return found
    return Predicate(regrained(m, found.expr, 1), found.bits)


@declare("func.call", Form("x*", "x*", syntax=Syntax.CALL), example=_CALL, means="out[0] = 2 * n")
def _call(m: Machine, op: Op) -> tuple[Lowered, ...] | None:
    """A call of a function of the module."""
    callee = op.attributes["callee"]
    assert isinstance(callee, SymbolRef)
    arguments = [m.values[v] for v in op.operands]
    if m.simt.threads is None and is_entry(m.callee(callee.name)):
        return launch(m, op, callee.name, m.simt.extents or alone(m).extents, arguments)
    return m.call(op, callee.name, arguments)


@declare(
    "pto.section.cube section.vector vecscope",
    Form(syntax=Syntax.REGION),
    is_by_bytes=True,
    example=_SECTION,
    means="y[0] = n",
)
@declare(
    "pto.strict_vecscope", Form("x*", syntax=Syntax.REGION), is_by_bytes=True, example=_STRICT, means="y[:64] = x[:64]"
)
def _section(m: Machine, op: Op) -> tuple[Lowered, ...]:
    """A region that runs where it stands."""
    region = op.regions[0]
    arguments = [m.values[v] for v in op.operands][: len(region.arguments)]
    if m.core is not None and m.core.skips(op, None):
        return ()
    with within(m, op):
        handed = m.region(region, arguments)
    return handed if op.results else ()


@declare("scf.for", _FOR, example=_LOOP, means="r = 9 * n")
def _for(m: Machine, op: Op, *bounds: Expr) -> tuple[Lowered, ...]:
    """A loop that counts up, and carries values."""
    start, stop, step = map(m.b.index, bounds)
    check_step(m, step)
    inits = [_carriable(m, v) for v in op.clause("iter_args") or ()]
    kept = carried(m, inits, "carried")
    hand_on(m, kept, inits)
    region, before = op.regions[0], set(m.written)
    counter = region.arguments[0].of(Scalar)
    with m.b.loop(start, stop, step, hint=region.arguments[0].name) as index:
        number = Number(m.b.cast(index, counter.dtype))
        arguments = [c.value for c in kept]
        hand_on(m, kept, m.region(region, (number, *arguments)))
    first, last = known(start), known(stop)
    if first is None or last is None or first >= last:
        m.written = before
    return tuple(c.value for c in kept)


def _refuse_cases(op: Op, _: Constants) -> None:
    """Raise unless an index chooses, and each number has one region."""
    (index,) = op.operands
    if index.type != INDEX:
        help = "cast it with `arith.index_cast`"
        raise PtoTypeMismatchError(f"`{op.name}` takes an index, `%{index.name}` is {index.type}", help=help)
    twice = next((case for case, count in Counter(cases_of(op)).items() if count > 1), None)
    if twice is not None:
        raise PtoOperandError(f"`{op.name}` has two regions for {twice}", help="join them, or drop one")


@declare("scf.if", Form("b", "x*", syntax=Syntax.IF), example=_BRANCH, means="r = 2 * n if is_ else n")
def _if(m: Machine, op: Op, condition: Expr) -> tuple[Lowered, ...]:
    """One of two regions, as a condition says."""
    return _chosen(m, [condition], op.regions)


@declare(
    "scf.index_switch",
    Form("i", "x*", syntax=Syntax.SWITCH),
    rule=_refuse_cases,
    example=_SWITCH,
    means="r = 2 * n if k == 3 else n",
)
def _switch(m: Machine, op: Op, index: Expr) -> tuple[Lowered, ...]:
    """The region of a number, or the last one."""
    return _chosen(m, [m.b.scalar("eq", index, m.b.index(case)) for case in cases_of(op)], op.regions)


@declare("scf.execute_region", Form("", "x*", syntax=Syntax.EXECUTE), example=_EXECUTE, means="r = 2 * n")
def _execute(m: Machine, op: Op) -> tuple[Lowered, ...]:
    """A region that runs once, where it stands, and hands values on."""
    return m.region(op.regions[0])


def _chosen(m: Machine, conditions: Sequence[Expr], regions: Sequence[Region]) -> tuple[Lowered, ...]:
    """Return what the region of the first condition that holds hands on; one more stands for none of them."""
    if not regions:
        return ()
    if not conditions:
        return m.region(regions[0])
    condition, *rest = conditions
    fixed = known(condition)
    if fixed is not None:
        return m.region(regions[0]) if fixed else _chosen(m, rest, regions[1:])
    before = set(m.written)
    with m.b.block() as then:
        values = m.region(regions[0])
        results = carried(m, values, "result")
        hand_on(m, results, values)
    after_then, m.written = m.written, set(before)
    with m.b.block() as other:
        hand_on(m, results, _chosen(m, rest, regions[1:]))
    m.written &= after_then
    m.b.either(condition, then, other)
    return tuple(r.value for r in results)


@declare("scf.while", Form("x*", "x*", syntax=Syntax.WHILE), example=_WHILE, means="r = 2 * n")
def _while(m: Machine, op: Op) -> tuple[Lowered, ...]:
    """The first region decides and hands values on, the second one makes the next turn's."""
    inits = [_carriable(m, v) for v in op.operands]
    kept = carried(m, inits, "carried")
    hand_on(m, kept, inits)
    before, after = op.regions
    going = m.b.variable(ScalarType(BOOL), "going")
    m.b.assign(going, constant(True, BOOL))
    arguments = [c.value for c in kept]
    with m.b.block() as body:
        condition, *values = m.region(before, arguments)
        assert isinstance(condition, Number)
        results = carried(m, values, "result")
        hand_on(m, results, values)
        m.b.assign(going, condition.expr)
        written = set(m.written)
        with m.b.when(going):
            handed = m.region(after, [r.value for r in results])
            hand_on(m, kept, handed)
        m.written = written
    m.b.repeat(going, body)
    return tuple(r.value for r in results)
