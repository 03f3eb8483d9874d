"""Directives as nobody should write them, and some as they should."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Case:
    """Lines of a function, the public class of their mistake, and part of the message."""

    body: str
    error: str
    quoted: str


SYNTAX, TYPE = "ParserSyntaxError", "ParserTypeError"
_STORE = "out = pl.store(pl.load(x, [0, 0], [16, 16]), [0, 0], out)"
_AT = "level=pl.Level.CORE_GROUP"


def _scope(head: str, body: str = _STORE) -> str:
    return f"with {head}:\n    {body}"


def _at(options: str) -> str:
    return _scope(f"pl.at({_AT}, {options})")


_HINTS = "optimizations=[pl.split(pl.SplitMode.UP_DOWN)]"

AT = [
    Case(_scope("pl.at(LEVEL, None, 3)"), SYNTAX, "at most 2 positional"),
    Case(_scope("pl.at()"), SYNTAX, "requires a level argument"),
    Case(_scope("pl.at(LEVEL, level=LEVEL)"), SYNTAX, "multiple values for argument"),
    Case(_at("x=1"), SYNTAX, "Unknown keyword argument 'x' in pl.at()"),
    Case(_at("allow_early_resolve=FLAG"), SYNTAX, "must be a boolean literal"),
    Case(_at("windowize=1"), SYNTAX, "must be a boolean literal"),
    Case(_at("role=pl.Role.SubWorker"), SYNTAX, "role="),
    Case(_scope(f"pl.at(level=pl.Level.CHIP, {_HINTS})", "pass"), SYNTAX, "optimizations="),
    Case(_scope(f"pl.at({_AT}) as out[0]"), SYNTAX, "plain variable name"),
    Case(_scope("pl.at(level=pl.Level.HOST, role=pl.Role.SubWorker)", "pass"), SYNTAX, "sub-worker"),
    Case(_at("no_dep_args=x"), TYPE, "must be a list literal of tensor names"),
    Case(_at("dumps=(x,)"), TYPE, "must be a list literal of tensor names"),
    Case(_at("dumps=[x[0:1, 0:1]]"), TYPE, "entries must be bare tensor names"),
    Case(_at("dumps=[missing]"), TYPE, "references unknown name"),
    Case(_at("no_dep_args=[n]"), TYPE, "is not a tensor"),
    Case(_at("dumps=[x, x]"), TYPE, "more than once"),
    Case(_at("optimizations=pl.split(pl.SplitMode.UP_DOWN)"), SYNTAX, "must be a list literal"),
    Case(
        _at("optimizations=[pl.split(pl.SplitMode.UP_DOWN), pl.split(pl.SplitMode.NONE)]"),
        SYNTAX,
        "Duplicate 'pl.split",
    ),
    Case(
        _at("optimizations=[pl.split(pl.SplitMode.NONE, slot_num=2), pl.cross_core_slot(slot_num=2)]"),
        SYNTAX,
        "Duplicate slot_num=",
    ),
    Case(_at("optimizations=[x]"), SYNTAX, "Unsupported entry in"),
    Case(_at("optimizations=[pl.split(pl.SplitMode.NONE, slots=2)]"), SYNTAX, "Unknown keyword argument 'slots'"),
    Case(_at("optimizations=[pl.cross_core_slot(slot_num=n)]"), SYNTAX, "must be an integer literal"),
    Case(_at("optimizations=[pl.cross_core_slot(slot_num=-1)]"), SYNTAX, "must be positive"),
    Case(_at("name_hint=n"), SYNTAX, "must be a string literal"),
    Case(_at("name_hint='my kernel'"), SYNTAX, "valid non-keyword identifier"),
    Case(_at("name_hint='for'"), SYNTAX, "valid non-keyword identifier"),
]

_CALL = "out = self.k(x, out)"

SPMD = [
    Case(_scope("pl.spmd()", _CALL), SYNTAX, "requires core_num"),
    Case(_scope("pl.spmd(4, 4)", _CALL), SYNTAX, "at most one positional argument"),
    Case(_scope("pl.spmd(4, core_num=4)", _CALL), SYNTAX, "multiple values"),
    Case(_scope("pl.spmd(1.5)", _CALL), SYNTAX, "must be an integer expression"),
    Case(_scope("pl.spmd(x)", _CALL), SYNTAX, "must be an integer expression"),
    Case(_scope("pl.spmd(0)", _CALL), SYNTAX, "must be a positive integer"),
    Case(_scope("pl.spmd(core_num=-4)", _CALL), SYNTAX, "must be a positive integer"),
    Case(_scope("pl.spmd(4, **FLAG)", _CALL), SYNTAX, "does not accept **kwargs"),
    Case(_scope("pl.spmd(4, blocks=4)", _CALL), SYNTAX, "unexpected keyword argument"),
    Case(_scope("pl.spmd(4, sync_start=FLAG)", _CALL), SYNTAX, "must be a boolean literal"),
    Case(_scope("pl.spmd(4, deps=[])", _CALL), SYNTAX, "does not accept 'deps='"),
    Case("for i in pl.spmd(4, deps=[]):\n    pass", SYNTAX, "does not accept 'deps='"),
    Case("for i, (a,) in pl.spmd(4):\n    pass", SYNTAX, "single loop variable"),
    Case("for i in pl.spmd(4, init_values=(n,)):\n    pass", SYNTAX, "does not accept 'init_values='"),
    Case("for i in pl.spmd(4, chunk=2):\n    pass", SYNTAX, "does not accept 'chunk='"),
    Case(_scope("pl.spmd(4)"), SYNTAX, "neither reads the per-block index"),
    Case(_scope("pl.spmd(4)", f"{_CALL}\n    {_CALL}"), SYNTAX, "launches 2 kernels"),
    Case(_scope(f"pl.spmd(4, {_HINTS})", _CALL), SYNTAX, "belongs on the InCore scope"),
    Case(
        f"for i in pl.spmd(4, {_HINTS}):\n    with pl.at({_AT}):\n        {_STORE}",
        SYNTAX,
        "belongs on the InCore scope",
    ),
    Case(
        f"for i in pl.spmd(4, {_HINTS}):\n    with pl.at({_AT}, {_HINTS}):\n        {_STORE}",
        SYNTAX,
        "specified twice",
    ),
    Case(
        f"with pl.cluster():\n    with pl.spmd(4) as t:\n        {_CALL}", SYNTAX, "cannot capture a TaskId when nested"
    ),
    Case(
        f"with pl.cluster():\n    with pl.spmd(4, allow_early_resolve=True):\n        {_CALL}",
        SYNTAX,
        "cannot be nested inside",
    ),
    Case(
        f"with pl.cluster():\n    with pl.spmd(4, predicate=flag[0] > 0):\n        {_CALL}",
        SYNTAX,
        "cannot be nested inside",
    ),
]

_LANES = "mode=pl.SplitMode.UP_DOWN"

LANES = [
    Case(f"for a in pl.split_aiv(3, {_LANES}):\n    pass", SYNTAX, "requires n == 2"),
    Case("for a in pl.split_aiv(2):\n    pass", SYNTAX, "requires mode="),
    Case(
        f"for a in pl.split_aiv(2, {_LANES}):\n    for b in pl.split_aiv(2, {_LANES}):\n        pass", SYNTAX, "nested"
    ),
    Case(f"for a in pl.split_aiv(2, {_LANES}, init_values=(n,)):\n    pass", SYNTAX, "does not accept 'init_values='"),
    Case(f"for a in pl.split_aiv(2, {_LANES}, {_HINTS}):\n    pass", SYNTAX, "does not accept 'optimizations='"),
    Case(f"for a in pl.split_aiv(2, {_LANES}):\n    break", "InvalidOperationError", "split_aiv"),
    Case(
        f'pl.func_attr({{"split": pl.SplitMode.UP_DOWN}})\nfor a in pl.split_aiv(2, {_LANES}):\n    pass',
        SYNTAX,
        "exclude each other",
    ),
]

_LOAD = "a = pl.load(x, [0, 0], [16, 16])\n"

SHARDS = [
    Case(
        _LOAD + f"for i in pl.split_aiv(2, {_LANES}):\n    b = pl.aiv_shard(a, {_LANES})",
        SYNTAX,
        "does not take a mode",
    ),
    Case(_LOAD + "b = pl.aiv_shard(a)", SYNTAX, "stands in a loop over pl.split_aiv()"),
    Case(_LOAD + "b = pl.aic_gather(a)", SYNTAX, "stands in a loop over pl.split_aiv()"),
    Case("b = pl.aiv_shard(x, split=1)", SYNTAX, "tile-only"),
    Case(_LOAD + f"for i in pl.split_aiv(2, {_LANES}):\n    b = pl.aiv_shard(a, split=1)", SYNTAX, "takes no split="),
]

SUBMIT = [
    Case("pl.submit(self.k, x, out)", SYNTAX, "must be unpacked"),
    Case("t = pl.submit(self.k, x, out)", SYNTAX, "must be unpacked"),
    Case("out, t = pl.submit(n, x, out)", SYNTAX, "the first argument"),
    Case("a, b, c, t = pl.submit(self.k, x, out)", TYPE, "4 name(s) for 2 value(s)"),
    Case("out, t = pl.spmd_submit(self.k, x, out)", SYNTAX, "requires the core_num keyword"),
    Case("out, t = pl.submit(self.k, x, out, core_num=4)", TYPE, "does not accept keyword argument 'core_num'"),
    Case("out, t = pl.submit(self.k, x, out, sync_start=True)", TYPE, "does not accept keyword argument 'sync_start'"),
    Case("out = self.k(x, out, deps=[])", TYPE, "does not accept keyword argument 'deps'"),
    Case("out = self.k(x, out, dumps=[x])", TYPE, "does not accept keyword argument 'dumps'"),
    Case("out, t = pl.submit(self.k, x, out, dumps=[flag])", TYPE, "is not an argument of the call"),
    Case("out, t = pl.submit(self.k, x, out, x)", TYPE, "expects 1..2 argument(s), got 3"),
    Case("out, t = pl.submit(self.k)", TYPE, "expects 1..2 argument(s), got 0"),
    Case("out = self.k(x)", TYPE, "expects 2 argument(s), got 1"),
    Case(
        "out, t = pl.submit(self.missing, x, out)",
        "UndefinedVariableError",
        "Function 'missing' not defined in program",
    ),
    Case("out, t = pl.submit(self.k, x, out, deps=[n])", TYPE, "deps= entries"),
    Case("out, t = pl.submit(self.k, x, out, deps=n)", TYPE, "deps= takes a list"),
    Case("out, t = pl.submit(self.k, x, out, deps=[t for t, u in FLAG])", SYNTAX, "one `for`"),
    Case("out, t = pl.submit(self.k, x, out, deps=[None for i in x])", TYPE, "integers that the compiler knows"),
    Case(
        "ids = pl.array.create(2, pl.TASK_ID)\nout, t = pl.submit(self.k, x, out, deps=[ids, ids[0]])",
        TYPE,
        "not both",
    ),
    Case("with pl.cluster():\n    out, t = pl.submit(self.k, x, out, deps=[])", SYNTAX, "cannot be nested inside"),
]

_PREDICATE = "out, t = pl.submit(self.k, x, out, predicate={})"

PREDICATES = [
    Case(_PREDICATE.format("FLAG"), SYNTAX, "single comparison"),
    Case(_PREDICATE.format("n > 0"), SYNTAX, "must compare one tensor element"),
    Case(_PREDICATE.format("flag[0] > n"), SYNTAX, "must compare one tensor element"),
    Case(_PREDICATE.format("n[0] > 0"), TYPE, "element of a tensor"),
    Case(_PREDICATE.format("x[0, 0] > 0"), TYPE, "signed integers"),
    Case(_PREDICATE.format("flag[0.5] > 0"), TYPE, "must be an integer"),
    Case(_PREDICATE.format("flag[-1] > 0"), TYPE, "non-negative"),
    Case(_PREDICATE.format("x[0] > 0"), TYPE, "takes 2 indices"),
]

_FUNCTION = "@pl.function\ndef f(x: pl.Tensor[[16], pl.FP32], n: pl.Scalar[pl.INDEX]):\n    {}\n"

MARKS = [
    Case(_FUNCTION.format("pl.dump_tag(x)"), SYNTAX, "only valid inside an Orchestration"),
    Case("pl.dump_tag(x, out)", SYNTAX, "one positional"),
    Case("pl.dump_tag(x[0:1, 0:1])", SYNTAX, "bare name"),
    Case("pl.dump_tag(missing)", SYNTAX, "not defined"),
    Case("pl.dump_tag(n)", TYPE, "marks tensors"),
    Case("m = n + 1\npl.func_attr({'a': 1})", SYNTAX, "must appear before every other statement"),
    Case("pl.func_attr({'a': 1}, {'b': 1})", SYNTAX, "exactly one positional dict argument"),
    Case("pl.func_attr(a=1)", SYNTAX, "exactly one positional dict argument"),
    Case("pl.func_attr(FLAG)", SYNTAX, "must be a dict literal"),
    Case("pl.func_attr({1: 1})", SYNTAX, "key must be a string literal"),
    Case("pl.func_attr({'a': 1})\npl.func_attr({'a': 2})", SYNTAX, "Duplicate function attribute"),
    Case("pl.func_attr({'auto_scope': False})", SYNTAX, "cannot be set with pl.func_attr"),
]

LOOPS = [
    Case("for i in x:\n    pass", SYNTAX, "For loop must use pl.range()"),
    Case(
        "for i, (a,) in pl.unroll(4, init_values=(n,)):\n    pass",
        SYNTAX,
        "Unknown keyword argument 'init_values' in pl.unroll()",
    ),
    Case("for i in pl.unroll(n):\n    pass", SYNTAX, "bounds the compiler knows"),
    Case("for i in pl.unroll(0, 4, 0):\n    pass", SYNTAX, "cannot be zero"),
    Case("for i in pl.pipeline(4):\n    pass", SYNTAX, "requires stage="),
    Case("for i in pl.pipeline(4, stage=n):\n    pass", SYNTAX, "a constant"),
    Case("for i in pl.pipeline(4, stage=0):\n    pass", SYNTAX, "must be >= 1"),
    Case("for i in pl.range(4, stage=2):\n    pass", SYNTAX, "Unknown keyword argument 'stage' in pl.range()"),
    Case("for i, (a, b) in pl.range(4, init_values=(n,)):\n    pass", SYNTAX, "Mismatch"),
    Case(
        "for i, (a,) in pl.range(4, init_values=(n,)):\n    pl.yield_(a)",
        SYNTAX,
        "requires an assignment-form pl.yield_",
    ),
    Case("for i in pl.range(4):\n    with pl.at(level=LEVEL):\n        break", SYNTAX, "kernel scope"),
    Case("for i in pl.parallel(4):\n    continue", "InvalidOperationError", "pl.parallel"),
    Case("for i in pl.unroll(4):\n    break", "InvalidOperationError", "pl.unroll"),
]

SCOPES = [
    Case(_scope("pl.scope(pl.ScopeMode.MANUAL)"), SYNTAX, "no positional arguments"),
    Case(_scope("pl.scope(kind=1)"), SYNTAX, "Unknown keyword argument 'kind' in pl.scope()"),
    Case("with pl.manual_scope():\n    with pl.manual_scope():\n        pass", SYNTAX, "inside a manual one"),
    Case("with pl.manual_scope():\n    with pl.scope():\n        pass", SYNTAX, "inside a manual one"),
    Case(_scope("pl.scope()"), SYNTAX, "auto_scope"),
]

TASKS = [
    Case("t = pl.system.task_dummy([])", "InvalidOperationError", "no positional arguments"),
    Case("t = pl.system.task_dummy(deps=[], after=[])", TYPE, "does not accept keyword argument 'after'"),
    Case("t = pl.system.task_dummy()", TYPE, "requires keyword argument 'deps'"),
]

EXTERN = [
    Case(
        "@pl.function(type=pl.FunctionType.Orchestration, external_source='k.cpp')\n"
        "def f(x: pl.Tensor[[4], pl.FP32]): ...\n",
        TYPE,
        "external_source=",
    ),
    Case(
        "@pl.function(type=pl.FunctionType.AIV, external_source='k.cpp')\n"
        "def f(x: pl.Tensor[[4], pl.FP32]):\n    return x\n",
        SYNTAX,
        "`...`",
    ),
]

CASES = [*AT, *SPMD, *LANES, *SHARDS, *SUBMIT, *PREDICATES, *MARKS, *LOOPS, *SCOPES, *TASKS, *EXTERN]

FUNCTIONS = [
    _at(
        "optimizations=[pl.split(pl.SplitMode.UP_DOWN), pl.cross_core_slot(slot_num=2)], name_hint='h', windowize=True"
    ),
    _at("dumps=[x, out], no_dep_args=[x], allow_early_resolve=True") + "\n",
    _scope("pl.spmd(core_num=4, sync_start=True, allow_early_resolve=True, name_hint='grid')", _CALL),
    f"for i in pl.spmd(n, predicate=(0 < flag[1]), {_HINTS}):\n    {_STORE}",
    "out, t = pl.submit(self.k, x)\nreturn out",
    "out, t = pl.submit(self.k, x, out, dumps=[x], allow_early_resolve=True, attrs={'a': [pl.adir.input]})",
    "r: pl.Tuple[pl.Tensor[[16, 16], pl.FP32], pl.TASK_ID] = pl.submit(self.k, x, out)\nreturn r[0]",
    "ids = pl.array.create(4, pl.TASK_ID)\n"
    "for i in pl.range(4):\n    out, t = pl.submit(self.k, x, out)\n    ids[i] = t\n"
    "a = pl.system.task_dummy(deps=[ids])\nb = pl.system.task_dummy(deps=[ids[i] for i in range(4) if i != 2])\n"
    "out, last = pl.spmd_submit(self.k, x, out, core_num=2, sync_start=True, deps=(a, None, b))\nreturn out",
    "pl.dump_tag(x)\nout, t = pl.submit(self.k, x, out)\nreturn out",
    "pl.func_attr({'a': 1, 'e': pl.SplitMode.UP_DOWN})\n"
    "pl.func_attr({'d': pl.FP16, 'n': n, 'dirs': [pl.adir.input, pl.adir.no_dep]})\nreturn out",
    "with pl.cluster(name_hint='both'):\n    with pl.spmd(2):\n        out = self.k(x, out)",
]
"""Bodies that say all a directive takes."""
