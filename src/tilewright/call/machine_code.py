"""Dispatch: the machine code between a Python call and a compiled program.

One function serves every kernel, program and PTO kernel. CPython calls it with the argument vector:

    arrange     arguments by parameter, in place or without the outputs
    gather      each tensor's memory, shape and strides, each number: the words of a key and of a launch
    find        the entry that the key belongs to, and for which everything it was compiled from is as it was
    make        the outputs that a return-style call leaves out
    run         the program, called with the words
    give_back   what the call returns

Whatever it does not know (a missing argument, another type, a layout with gaps, a key nobody has compiled) goes to the
fallback, a Python function that knows everything. What it works on are tables of words that Python fills;
`words` says what stands where.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.call.code import NO, NULL, OBJECT_TYPE, TUPLE_ITEMS, TUPLE_SIZE, TYPE_VECTORCALL, YES, Code
from tilewright.call.code_arguments import ARGUMENTS
from tilewright.call.code_lookup import LOOKUPS
from tilewright.call.words import (
    IN_PLACE,
    KEY_WORDS,
    LAUNCH_WORDS,
    MAX_PARAMS,
    PYTHON,
    RELEASE_BYTES,
    RESULT_WORDS,
    RETURNING,
    Entry,
    Frame,
    State,
    Watch,
)
from tilewright.native.context import NUMBERS, Context
from tilewright.native.llvm import I1, I32, I64, PTR, Module, Value, i64


def dispatcher() -> str:
    """Return the module that defines `@dispatch`, a METH_FASTCALL | METH_KEYWORDS function, as text."""
    module = Module()
    for name, returns, params in PYTHON:
        module.intrinsic(name, returns, *params)
    module.intrinsic("llvm.cttz.i64", I64, I64, I1)
    for write in (*LOOKUPS, *ARGUMENTS, _arrange, _make, _clear, _drop, _run, _give_back, _dispatch):
        write(module)
    return module.text()


def _arrange(module: Module) -> None:
    """Write `@arrange(state, args, count, names, placed, style)`: arguments by parameter, others by their defaults.

    In place every parameter has one; a return-style call gives its inputs, and nothing for its outputs. Defaults are
    taken as the function has them at this moment, and only such as are copied at once: whoever replaces them meanwhile
    takes no argument away. Behind the parameters lies the configuration, where the call has one.
    """
    state, args, names, placed = (Value(PTR, f"%{n}") for n in ("state", "args", "names", "placed"))
    count, style = Value(I64, "%count"), Value(I64, "%style")
    c = Code(module, "arrange", [state, args, count, names, placed, style], I1, NO)
    params = c.word(state, State.PARAMS)
    is_returning = c.compare("icmp eq", style, i64(RETURNING))
    limits = c.word(state, State.INPUTS), c.word(state, State.PLACES)
    c.refuse(c.compare("icmp sgt", count, c.select(is_returning, *limits)))
    order = c.select(is_returning, c.word(state, State.INPUT_TABLE, PTR), c.word(state, State.PLACE_TABLE, PTR))
    outputs = c.word(state, State.OUTPUTS)
    c.put(placed, MAX_PARAMS, NULL)
    with c.loop(i64(0), params, i64(1)) as index:
        c.put(placed, index, NULL)
    with c.loop(i64(0), count, i64(1)) as index:
        c.put(placed, c.word(order, index), c.word(args, index, PTR))
    with c.when(c.is_not(names, NULL)):
        table = c.word(state, State.NAMES, PTR)
        with c.loop(i64(0), c.word(names, TUPLE_SIZE), i64(1)) as index:
            name = c.word(c.offset(names, i64(TUPLE_ITEMS), I64), index, PTR)
            found = c.slot(I64)
            c.store(i64(-1), found, 8)
            with c.loop(i64(0), params, i64(1)) as place:
                same = c.compare("icmp eq", c.word(table, place, PTR), name)
                c.store(c.select(same, place, c.load(I64, found, 8)), found, 8)
            is_config = c.compare("icmp eq", c.word(state, State.CONFIG_NAME, PTR), name)
            place = c.select(is_config, i64(MAX_PARAMS), c.load(I64, found, 8))
            c.refuse(c.compare("icmp slt", place, i64(0)))
            c.refuse(c.is_not(c.word(placed, place, PTR), NULL))
            c.refuse(c.op("and", is_returning, _bit(c, outputs, place)))
            c.put(placed, place, c.word(args, c.op("add", count, index), PTR))
    with c.loop(i64(0), params, i64(1)) as index:
        is_output = _bit(c, outputs, index)
        is_missing = c.compare("icmp eq", c.word(placed, index, PTR), NULL)
        with c.when(c.op("and", is_output, c.negated(is_returning))):
            c.refuse(is_missing)
            c.refuse(_is_plain(c, state, c.word(placed, index, PTR)))
        with c.when(c.op("and", is_missing, c.negated(is_output))):
            slot = c.word(state, State.DEFAULTS, PTR)
            c.refuse(c.compare("icmp eq", slot, NULL))
            defaults = c.word(slot, 0, PTR)
            c.refuse(c.compare("icmp eq", defaults, NULL))
            missing = c.op("sub", params, c.word(defaults, TUPLE_SIZE))
            c.refuse(c.compare("icmp slt", index, missing))
            items = c.offset(defaults, i64(TUPLE_ITEMS), I64)
            value = c.word(items, c.op("sub", index, missing), PTR)
            c.refuse(c.negated(_is_plain(c, state, value)))
            c.put(placed, index, value)
    c.done(Value(I1, YES))


def _bit(c: Code, bits: Value, index: Value) -> Value:
    return c.convert("trunc", c.op("lshr", bits, index), I1)


def _is_plain(c: Code, state: Value, value: Value) -> Value:
    """Return whether a value is a number, a string or None: copied at once, and no tensor."""
    kind = c.word(value, 1)
    found = c.compare("icmp eq", c.number(value), c.word(state, State.NONE))
    for plain in (State.FLOAT, State.INT, State.BOOL, State.STR):
        found = c.op("or", found, c.compare("icmp eq", kind, c.word(state, plain)))
    return found


def _make(module: Module) -> None:
    """Write `@make(entry, placed)`: new outputs where a call leaves them out; no where Python raised."""
    entry, placed = Value(PTR, "%found"), Value(PTR, "%placed")
    c = Code(module, "make", [entry, placed], I1, NO)
    with c.each(c.word(entry, Entry.MAKERS), c.word(entry, Entry.MAKER_TABLE, PTR), 3) as maker:
        made = c.call(PTR, "PyObject_VectorcallDict", c.word(maker, 0, PTR), NULL, i64(0), NULL)
        c.refuse(c.compare("icmp eq", made, NULL))
        c.put(placed, c.word(maker, 1), made)
    c.done(Value(I1, YES))


def _clear(module: Module) -> None:
    """Write `@clear(entry, ranges)`: zeros where new outputs hold anything."""
    entry, ranges = Value(PTR, "%found"), Value(PTR, "%ranges")
    c = Code(module, "clear", [entry, ranges], "void", "")
    with c.each(c.word(entry, Entry.MAKERS), c.word(entry, Entry.MAKER_TABLE, PTR), 3) as maker:
        number = c.word(maker, 2)
        with c.when(c.compare("icmp sge", number, i64(0))):
            spot = c.offset(ranges, c.op("mul", number, i64(3)), I64)
            size = c.op("sub", c.word(spot, 1), c.word(spot, 0))
            c.call(PTR, "memset", c.word(spot, 0, PTR), Value(I32, "0"), size)
    c.finish()


def _drop(module: Module) -> None:
    """Write `@drop(entry, placed)`: new outputs let go of; whoever they were given back to has them."""
    entry, placed = Value(PTR, "%found"), Value(PTR, "%placed")
    c = Code(module, "drop", [entry, placed], "void", "")
    with c.each(c.word(entry, Entry.MAKERS), c.word(entry, Entry.MAKER_TABLE, PTR), 3) as maker:
        made = c.word(placed, c.word(maker, 1), PTR)
        with c.when(c.is_not(made, NULL)):
            c.invoke("Py_DecRef", made)
    c.finish()


_GIVEN = {Context.PARALLEL: State.PARALLEL, Context.LOOK: State.LOOK, Context.THREADS: State.THREADS}
"""The words of a context that a kernel's state gives; the others start as 0."""


def _run(module: Module) -> None:
    """Write `@run(state, entry, frame, launch)`: the program called; its first error's number, and what to free."""
    state, entry, frame, launch, context = (
        Value(PTR, f"%{n}") for n in ("state", "found", "frame", "launch", "context")
    )
    c = Code(module, "run", [state, entry, frame, launch, context], "void", "")
    with c.each(c.word(entry, Entry.SCALARS), c.word(entry, Entry.SCALAR_TABLE, PTR), 2) as pair:
        c.put(launch, c.word(pair, 0), c.word(pair, 1))
    for word in (word for word in Context if word not in NUMBERS):
        c.put(context, word, c.word(state, _GIVEN[word]) if word in _GIVEN else i64(0))
    with c.when(c.is_not(c.word(entry, Entry.THREADS), i64(0))):
        c.put(context, Context.PARALLEL, c.word(entry, Entry.PARALLEL))
        c.put(context, Context.THREADS, c.word(entry, Entry.THREADS))
    function, program = c.word(entry, Entry.FUNCTION, PTR), c.word(entry, Entry.PROGRAM, PTR)
    large = c.compare("icmp sge", c.word(frame, Frame.BYTES), i64(RELEASE_BYTES))
    alone, shared, end = c.label("alone"), c.label("shared"), c.label("end")
    c.do(f"br {large}, label %{alone}, label %{shared}")
    c.begin(alone)
    thread = c.call(PTR, "PyEval_SaveThread")
    c.do(f"call void {function.ref}({launch}, {context}, {program})")  # which a program ignores
    c.invoke("PyEval_RestoreThread", thread)
    c.do(f"br label %{end}")
    c.begin(shared)
    c.do(f"call void {function.ref}({launch}, {context}, {program})")
    c.do(f"br label %{end}")
    c.begin(end)
    c.finish()


def _give_back(module: Module) -> None:
    """Write `@give_back(state, entry, values)`: what a call returns: None, one of its arguments, or a tuple of some."""
    state, entry, values = (Value(PTR, f"%{n}") for n in ("state", "found", "values"))
    c = Code(module, "give_back", [state, entry, values], PTR, "")
    count, table = c.word(entry, Entry.RETURNS), c.word(entry, Entry.RETURN_TABLE, PTR)
    with c.alternative(c.compare("icmp eq", count, i64(0))):
        none = c.word(state, State.NONE, PTR)
        c.invoke("Py_IncRef", none)
        c.do(f"ret {none}")
    with c.alternative(c.compare("icmp eq", count, i64(1))):
        given = c.word(values, c.word(table, 0), PTR)
        c.invoke("Py_IncRef", given)
        c.do(f"ret {given}")
    made = c.call(PTR, "PyTuple_New", count)
    with c.when(c.is_not(made, NULL)):
        with c.loop(i64(0), count, i64(1)) as index:
            given = c.word(values, c.word(table, index), PTR)
            c.invoke("Py_IncRef", given)
            c.put(c.offset(made, i64(TUPLE_ITEMS), I64), index, given)
    c.finish(made)


def _dispatch(module: Module) -> None:
    """Write `@dispatch(self, args, count, names)`, what CPython calls."""
    self, args, names = (Value(PTR, f"%{n}") for n in ("self", "args", "names"))
    count = Value(I64, "%count")
    c = Code(module, "dispatch", [self, args, count, names], PTR, "")
    c.head = c.head.replace("internal ", "")
    state = c.word(self, 2, PTR)  # the pointer of a capsule
    _count_active(c, state, 1)
    placed = c.frame_bytes(8 * (MAX_PARAMS + 1))
    c.put(placed, MAX_PARAMS, NULL)
    values, style = _arranged(c, state, (args, count, names), placed)
    ask = c.word(state, State.GET_THREADS, PTR)
    with c.when(c.is_not(ask, NULL)):
        threads = c.convert("sext", c.value(I32, f"call i32 {ask.ref}()"), I64)
        c.refuse(c.is_not(threads, c.word(state, State.THREADS)))
    with c.each(c.word(state, State.WATCHES), c.word(state, State.WATCH_TABLE, PTR), len(Watch)) as watch:
        c.refuse(c.negated(c.call(I1, "watch", watch)))
    c.refuse(c.call(I1, "watched", state))
    frame, key = c.frame_bytes(8 * len(Frame)), c.frame_bytes(8 * KEY_WORDS)
    launch = c.frame_bytes(8 * (LAUNCH_WORDS + RESULT_WORDS))
    ranges, context = c.frame_bytes(24 * MAX_PARAMS), c.frame_bytes(8 * len(Context))
    c.refuse(c.negated(c.call(I1, "gather", state, values, style, frame, key, launch, ranges)))
    c.refuse(c.negated(c.call(I1, "configured", state, c.word(placed, MAX_PARAMS, PTR), frame, key)))
    entry = c.call(PTR, "find", state, frame, key)
    c.refuse(c.compare("icmp eq", entry, NULL))
    is_made = c.is_not(c.word(entry, Entry.MAKERS), i64(0))
    undo = c.label("undo")
    with c.when(is_made):
        with c.alternative(c.negated(c.call(I1, "make", entry, placed))):
            c.invoke("drop", entry, placed)
            _count_active(c, state, -1)
            c.do("ret ptr null")
        _unless(c, c.call(I1, "gather", state, values, style, frame, key, launch, ranges), undo)
        c.invoke("clear", entry, ranges)
    _unless(c, c.call(I1, "apart", frame, ranges), undo)
    c.invoke("run", state, entry, frame, launch, context)
    error, buffers = c.word(context, Context.ERROR), c.word(context, Context.BUFFERS)
    numbers = error, buffers, c.word(entry, Entry.NUMBER)
    with c.alternative(c.is_not(error, i64(0))):
        c.invoke("drop", entry, placed)
        _count_active(c, state, -1)
        c.do(f"ret {_finished(c, state, [*numbers, *(c.word(context, word) for word in NUMBERS)])}")
    with c.when(c.is_not(buffers, i64(0))):
        freed = _finished(c, state, numbers)
        with c.alternative(c.compare("icmp eq", freed, NULL)):
            c.invoke("drop", entry, placed)
            _count_active(c, state, -1)
            c.do("ret ptr null")
        c.invoke("Py_DecRef", freed)
    c.put(state, State.HITS, c.op("add", c.word(state, State.HITS), i64(1)))
    answer = c.call(PTR, "give_back", state, entry, values)
    with c.when(is_made):
        c.invoke("drop", entry, placed)
    _count_active(c, state, -1)
    c.do(f"ret {answer}")
    c.begin(undo)
    c.invoke("drop", entry, placed)
    c.do(f"br label %{c.out}")
    c.begin(c.out)
    _count_active(c, state, -1)
    fallback = c.word(state, State.FALLBACK, PTR)
    c.finish(_vectorcall(c, fallback, args, count, names))


def _arranged(c: Code, state: Value, call: tuple[Value, Value, Value], placed: Value) -> tuple[Value, Value]:
    """Return where the arguments of a call lie by parameter, and its style."""
    args, count, names = call
    values, style = c.slot(PTR), c.slot(I64)
    c.store(args, values, 8)
    c.store(i64(IN_PLACE), style, 8)
    params = c.word(state, State.PARAMS)
    partial = c.op("or", c.is_not(count, params), c.is_not(params, c.word(state, State.PLACES)))
    with c.when(c.op("or", c.is_not(names, NULL), partial)):
        c.store(placed, values, 8)
        with c.when(c.negated(c.call(I1, "arrange", state, args, count, names, placed, i64(IN_PLACE)))):
            c.refuse(c.negated(c.call(I1, "arrange", state, args, count, names, placed, i64(RETURNING))))
            c.store(i64(RETURNING), style, 8)
    return c.load(PTR, values, 8), c.load(I64, style, 8)


def _unless(c: Code, condition: Value, target: str) -> None:
    """Go on where a condition holds, and to a label where not."""
    on = c.label("on")
    c.do(f"br {condition}, label %{on}, label %{target}")
    c.begin(on)


def _finished(c: Code, state: Value, numbers: Sequence[Value]) -> Value:
    """Return what Python gives for an error's number, buffers to free and a program's number: null where it raised.

    The numbers that an error names come last.
    """
    told = c.frame_bytes(8 * len(numbers))
    for position, number in enumerate(numbers):
        c.put(told, position, c.call(PTR, "PyLong_FromLongLong", number))
    failed = c.word(state, State.FAILED, PTR)
    answer = c.call(PTR, "PyObject_VectorcallDict", failed, told, i64(len(numbers)), NULL)
    for position in range(len(numbers)):
        c.invoke("Py_DecRef", c.word(told, position, PTR))
    return answer


def _vectorcall(c: Code, callee: Value, *args: Value) -> Value:
    """Call a Python function or method, keywords in a tuple; Python 3.10 exports nothing that does."""
    where = c.word(c.word(callee, OBJECT_TYPE, PTR), TYPE_VECTORCALL)
    function = c.word(c.offset(callee, where, "i8"), 0, PTR)
    return c.value(PTR, f"call ptr {function.ref}({', '.join(map(str, (callee, *args)))})")


def _count_active(c: Code, state: Value, change: int) -> None:
    c.put(state, State.ACTIVE, c.op("add", c.word(state, State.ACTIVE), i64(change)))
