"""Dispatch: the machine code between a Python call and a compiled program.

One function serves every kernel. CPython calls it with the argument vector; it reads each tensor's memory, shape and
strides, builds a key of 64-bit words, finds the entry that the key belongs to in a hash table, checks that nothing the
entry was compiled from has changed, and calls the program. Whatever it does not know (a missing argument, another type,
a layout with gaps, a key nobody has compiled) goes to the Python function behind it, which knows everything.

What it works on are tables of words that Python fills; `words` says what stands where.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager

from tilewright.call.words import (
    BOOL,
    FLOAT,
    HASH_FACTOR,
    HASH_SEED,
    INTEGER,
    ITSELF,
    KEY_WORDS,
    LAUNCH_WORDS,
    MAX_PARAMS,
    MAX_RANK,
    NONE,
    NUMPY_KINDS,
    PYTHON,
    RELEASE_BYTES,
    RESULT_WORDS,
    TENSOR,
    TORCH_KINDS,
    TORCH_RANKS,
    Entry,
    Frame,
    Group,
    Probe,
    State,
    Watch,
)
from tilewright.native.context import Context
from tilewright.native.llvm import I1, I64, PTR, Builder, Module, Value, i64


def dispatcher() -> str:
    """Return the module that defines `@dispatch`, a METH_FASTCALL | METH_KEYWORDS function, as text."""
    module = Module()
    for name, returns, params in PYTHON:
        module.intrinsic(name, returns, *params)
    module.intrinsic("llvm.cttz.i64", I64, I64, I1)
    tests = _watch, _probe, _spread, _holds, _overlaps, _recorded, _watched
    for write in (*tests, _pack, _find, _run, _argument, _arrange, _dispatch):
        write(module)
    return module.text()


class Code(Builder):
    """A function of the dispatcher being written; `refuse` leaves it with the answer that means no."""

    def __init__(self, module: Module, name: str, params: Sequence[Value], returns: str, no: str) -> None:
        super().__init__(module, name, params, returns=returns, linkage="internal", attrs="nounwind")
        self.no = Value(returns, no)
        self.out = self.label("no")

    def refuse(self, condition: Value) -> None:
        """Leave where a condition holds."""
        on = self.label("on")
        self.do(f"br {condition}, label %{self.out}, label %{on}")
        self.begin(on)

    def done(self, result: Value) -> None:
        """End the function with its other answer."""
        self.do(f"ret {result}")
        self.begin(self.out)
        self.finish(self.no)

    def word(self, base: Value, index: int | Value, type_: str = I64) -> Value:
        """Return a word of a table."""
        at = i64(index) if isinstance(index, int) else index
        return self.load(type_, self.offset(base, at, I64), 8)

    def put(self, base: Value, index: int | Value, value: Value) -> None:
        """Write a word of a table."""
        at = i64(index) if isinstance(index, int) else index
        self.store(value, self.offset(base, at, I64), 8)

    def at(self, base: Value, byte: Value, type_: str = I64) -> Value:
        """Return what lies some bytes past an address."""
        return self.load(type_, self.offset(base, byte, "i8"), 1)

    def is_not(self, one: Value, other: Value) -> Value:
        """Return whether two words differ."""
        return self.compare("icmp ne", one, other)

    def pointer(self, word: Value) -> Value:
        """Return a word as an address."""
        return self.value(PTR, f"inttoptr {word} to ptr")

    def number(self, pointer: Value) -> Value:
        """Return an address as a word."""
        return self.value(I64, f"ptrtoint {pointer} to i64")

    def negated(self, condition: Value) -> Value:
        """Return the opposite of a condition."""
        return self.op("xor", condition, Value(I1, "true"))

    def frame_bytes(self, size: int) -> Value:
        """Return so many bytes of the function's frame."""
        ref = f"%room{next(self.numbers)}"
        self.lines[0] += f"\n  {ref} = alloca [{size} x i8], align 8"
        return Value(PTR, ref)

    def mixed(self, digest: Value, word: Value) -> Value:
        """Return a hash with one more word in it."""
        product = self.op("mul", self.op("xor", digest, word), i64(HASH_FACTOR))
        return self.op("xor", product, self.op("lshr", product, i64(29)))

    @contextmanager
    def alternative(self, condition: Value) -> Generator[None, None, None]:
        """Emit code that is run, and leaves the function, where a condition holds."""
        then, after = self.label("then"), self.label("after")
        self.do(f"br {condition}, label %{then}, label %{after}")
        self.begin(then)
        yield
        self.begin(after)

    @contextmanager
    def each(self, count: Value, table: Value, size: int) -> Generator[Value, None, None]:
        """Emit a loop over records of so many words around what is emitted inside."""
        with self.loop(i64(0), count, i64(1)) as index:
            yield self.offset(table, self.op("mul", index, i64(size)), I64)


_YES, _NO = "true", "false"


def _watch(module: Module) -> None:
    """Write `@watch(watch)`: whether a dict still holds what it held."""
    watch = Value(PTR, "%watch")
    c = Code(module, "watch", [watch], I1, _NO)
    holder = c.word(watch, Watch.DICT, PTR)
    version_at = c.word(watch, Watch.VERSION_AT)
    changed, same = c.label("changed"), c.label("same")
    version = c.at(holder, version_at)
    known = c.op("and", c.is_not(version_at, i64(0)), c.compare("icmp eq", version, c.word(watch, Watch.VERSION)))
    c.do(f"br {known}, label %{same}, label %{changed}")
    c.begin(changed)
    with c.each(c.word(watch, Watch.ITEMS), c.word(watch, Watch.ITEM_TABLE, PTR), 2) as item:
        found = c.call(PTR, "PyDict_GetItem", holder, c.word(item, 0, PTR))
        c.refuse(c.is_not(found, c.word(item, 1, PTR)))
    c.put(watch, Watch.VERSION, version)
    c.do(f"br label %{same}")
    c.begin(same)
    c.done(Value(I1, _YES))


def _probe(module: Module) -> None:
    """Write `@probe(probe)`: whether an access gives what it gave."""
    probe = Value(PTR, "%probe")
    c = Code(module, "probe", [probe], I1, _NO)
    kind, owner, key, expected = (c.word(probe, k, I64 if k == 0 else PTR) for k in range(4))
    found = c.slot(PTR)
    sized, taken, attribute, item, ready = (c.label(n) for n in ("sized", "taken", "attribute", "item", "ready"))
    c.do(f"br {c.compare('icmp eq', kind, i64(Probe.SIZE))}, label %{sized}, label %{taken}")
    c.begin(sized)
    count = c.call(I64, "PyObject_Size", owner)
    c.refuse(c.is_not(count, c.number(expected)))
    c.do(f"ret i1 {_YES}")
    c.begin(taken)
    c.do(f"br {c.compare('icmp eq', kind, i64(Probe.ATTRIBUTE))}, label %{attribute}, label %{item}")
    for label, function in ((attribute, "PyObject_GetAttr"), (item, "PyObject_GetItem")):
        c.begin(label)
        c.store(c.call(PTR, function, owner, key), found, 8)
        c.do(f"br label %{ready}")
    c.begin(ready)
    value = c.load(PTR, found, 8)
    missing = c.compare("icmp eq", value, Value(PTR, "null"))
    with c.when(missing):
        c.invoke("PyErr_Clear")
    c.refuse(missing)
    c.invoke("Py_DecRef", value)  # the baseline holds a reference to what should have been found
    c.refuse(c.is_not(value, expected))
    c.done(Value(I1, _YES))


def _pack(module: Module) -> None:
    """Write `@pack(...)`: a tensor's words added to key and launch; no where only Python can take it.

    `%shift` is how many bytes a stride of one is, as a power of two: 0 where strides count elements. The memory lies
    between `%low` and `%high`, and a tensor that reaches beyond has lost some. Whoever calls has refused unknown
    element types, and ranks without room.
    """
    frame, key, launch, ranges, data, dtype, rank, shape, strides, shift, written, low, high = params = [
        Value(t, f"%{n}")
        for t, n in (
            *((PTR, n) for n in ("frame", "key", "launch", "ranges", "data")),
            *((I64, n) for n in ("dtype", "rank")),
            *((PTR, n) for n in ("shape", "strides")),
            *((I64, n) for n in ("shift", "written", "low", "high")),
        )
    ]
    c = Code(module, "pack", params, I1, _NO)
    size = c.op("lshr", c.op("and", dtype, i64(0xFF00)), i64(11))
    address = c.number(data)
    c.refuse(c.is_not(c.op("and", address, c.op("sub", size, i64(1))), i64(0)))
    words, launched = c.word(frame, Frame.KEY), c.word(frame, Frame.LAUNCH)
    tag = c.op("or", c.op("or", i64(TENSOR), c.op("shl", rank, i64(32))), dtype)
    c.put(key, words, tag)
    c.put(launch, launched, address)
    extents = c.op("add", launched, i64(1))
    steps = c.op("add", extents, rank)
    last = c.op("sub", rank, i64(1))
    reach, count = c.slot(I64), c.slot(I64)
    c.store(i64(0), reach, 8)
    c.store(i64(1), count, 8)
    with c.loop(i64(0), rank, i64(1)) as axis:
        extent = c.word(shape, axis)
        raw = c.word(strides, axis)
        step = c.op("ashr", raw, shift)
        c.refuse(c.is_not(c.op("shl", step, shift), raw))
        is_last = c.compare("icmp eq", axis, last)
        short = c.compare("icmp sle", extent, i64(1))
        gaps = c.op("and", c.op("and", is_last, c.negated(short)), c.is_not(step, i64(1)))
        backward = c.op("and", c.negated(short), c.compare("icmp slt", step, i64(0)))
        c.refuse(c.op("or", gaps, backward))
        c.put(key, c.op("add", c.op("add", words, i64(1)), axis), extent)
        c.put(launch, c.op("add", extents, axis), extent)
        c.put(launch, c.op("add", steps, axis), c.select(is_last, i64(1), step))
        along = c.op("mul", c.op("sub", extent, i64(1)), step)
        c.store(c.op("add", c.load(I64, reach, 8), c.select(short, i64(0), along)), reach, 8)
        c.store(c.op("mul", c.load(I64, count, 8), extent), count, 8)
    with c.when(c.is_not(written, i64(0))):
        c.refuse(c.negated(c.call(I1, "spread", rank, shape, c.offset(launch, steps, I64))))
    c.put(frame, Frame.KEY, c.op("add", c.op("add", words, i64(1)), rank))
    c.put(frame, Frame.LAUNCH, c.op("add", steps, rank))
    elements = c.load(I64, count, 8)
    c.put(frame, Frame.BYTES, c.op("add", c.word(frame, Frame.BYTES), c.op("mul", elements, size)))
    number = c.word(frame, Frame.TENSORS)
    spot = c.offset(ranges, c.op("mul", number, i64(3)), I64)
    end = c.op("add", address, c.op("mul", c.op("add", c.load(I64, reach, 8), i64(1)), size))
    is_empty = c.compare("icmp eq", elements, i64(0))
    outside = c.op("or", c.compare("icmp ult", address, low), c.compare("icmp ugt", end, high))
    c.refuse(c.op("and", outside, c.negated(is_empty)))
    c.put(spot, 0, address)
    c.put(spot, 1, c.select(is_empty, address, end))
    c.put(spot, 2, written)
    c.put(frame, Frame.TENSORS, c.op("add", number, i64(1)))
    c.done(Value(I1, _YES))


def _spread(module: Module) -> None:
    """Write `@spread(rank, shape, steps)`: whether surely no two elements of a tensor share memory.

    That is so where a step along any axis goes further than all the axes with smaller steps together.
    """
    rank, shape, steps = Value(I64, "%rank"), Value(PTR, "%shape"), Value(PTR, "%steps")
    c = Code(module, "spread", [rank, shape, steps], I1, _NO)
    within = c.slot(I64)
    with c.loop(i64(0), rank, i64(1)) as axis:
        step = c.word(steps, axis)
        c.store(i64(0), within, 8)
        with c.loop(i64(0), rank, i64(1)) as other:
            smaller, extent = c.word(steps, other), c.word(shape, other)
            before = c.op("and", c.compare("icmp eq", smaller, step), c.compare("icmp slt", other, axis))
            counts = c.op("or", c.compare("icmp slt", smaller, step), before)
            along = c.op("mul", c.op("sub", extent, i64(1)), smaller)
            along = c.select(c.op("and", counts, c.compare("icmp sgt", extent, i64(1))), along, i64(0))
            c.store(c.op("add", c.load(I64, within, 8), along), within, 8)
        long = c.compare("icmp sgt", c.word(shape, axis), i64(1))
        c.refuse(c.op("and", long, c.compare("icmp sge", c.load(I64, within, 8), step)))
    c.done(Value(I1, _YES))


def _argument(module: Module) -> None:
    """Write `@argument(state, frame, key, launch, ranges, object, written)`: one argument's words."""
    state, frame, key, launch, ranges, given = (
        Value(PTR, f"%{n}") for n in ("state", "frame", "key", "launch", "ranges", "given")
    )
    written = Value(I64, "%written")
    c = Code(module, "argument", [state, frame, key, launch, ranges, given, written], I1, _NO)
    kind = c.word(given, 1)
    torch, numpy, scalar = c.label("torch"), c.label("numpy"), c.label("scalar")
    other = c.label("other")
    plain = c.compare("icmp eq", kind, c.word(state, State.TORCH_TENSOR))
    learned = c.compare("icmp eq", kind, c.word(state, State.TORCH_PARAMETER))
    c.do(f"br {c.op('or', plain, learned)}, label %{torch}, label %{other}")
    c.begin(other)
    c.do(f"br {c.compare('icmp eq', kind, c.word(state, State.NDARRAY))}, label %{numpy}, label %{scalar}")
    c.begin(torch)
    _torch(c, state, (frame, key, launch, ranges), given, written)
    c.begin(numpy)
    _numpy(c, state, (frame, key, launch, ranges), given, written)
    c.begin(scalar)
    _scalar(c, state, (frame, key, launch), given, kind)


def _torch(c: Code, state: Value, room: Sequence[Value], given: Value, written: Value) -> None:
    impl = c.pointer(c.at(given, c.word(state, State.TORCH_IMPL)))
    keys = c.at(impl, c.word(state, State.TORCH_KEYS))
    plain = c.is_not(keys, c.word(state, State.TORCH_PLAIN))
    c.refuse(c.op("and", plain, c.is_not(keys, c.word(state, State.TORCH_INFERENCE))))
    followed = c.is_not(c.at(impl, c.word(state, State.TORCH_GRAD)), i64(0))
    ask, on = c.label("ask"), c.label("quiet")
    c.do(f"br {followed}, label %{ask}, label %{on}")
    c.begin(ask)
    c.refuse(c.call(I1, "recorded", state, impl))
    c.do(f"br label %{on}")
    c.begin(on)
    rank = c.at(impl, c.word(state, State.TORCH_RANK))
    c.refuse(c.compare("icmp ugt", rank, i64(TORCH_RANKS)))
    number = c.convert("zext", c.at(impl, c.word(state, State.TORCH_DTYPE), "i16"), I64)
    c.refuse(c.compare("icmp ugt", number, i64(TORCH_KINDS - 1)))
    dtype = c.word(c.word(state, State.TORCH_DTYPES, PTR), number)
    size = c.op("lshr", c.op("and", dtype, i64(0xFF00)), i64(11))
    c.refuse(c.compare("icmp eq", size, i64(0)))
    storage = c.pointer(c.at(impl, c.word(state, State.TORCH_STORAGE)))
    place = c.word(state, State.STORAGE_DATA)
    freed_by = c.at(storage, c.op("add", place, i64(8)))
    c.refuse(c.compare("icmp eq", freed_by, c.word(state, State.STORAGE_LAZY)))
    low = c.at(storage, place)
    high = c.op("add", low, c.at(storage, c.word(state, State.STORAGE_BYTES)))
    start = c.op("mul", c.at(impl, c.word(state, State.TORCH_OFFSET)), size)
    data = c.pointer(c.op("add", low, start))
    shape = c.offset(impl, c.word(state, State.TORCH_SIZES), "i8")
    strides = c.offset(impl, c.word(state, State.TORCH_STRIDES), "i8")
    _packed(c, room, (data, dtype, rank, shape, strides, i64(0), written, low, high))


def _watched(module: Module) -> None:
    """Write `@watched(state)`: whether torch traces or transforms what this thread does, and would miss it."""
    state = Value(PTR, "%state")
    c = Code(module, "watched", [state], I1, _NO)
    get = c.word(state, State.GET_THREAD_LOCAL, PTR)
    c.refuse(c.compare("icmp eq", get, Value(PTR, "null")))
    held = c.value(PTR, f"call ptr {get.ref}({c.word(state, State.TORCH_THREAD, PTR)})")
    added = c.word(held, 0)
    is_odd = c.is_not(added, c.word(state, State.THREAD_PLAIN))
    c.done(c.op("and", is_odd, c.is_not(added, c.word(state, State.THREAD_INFERENCE))))


def _recorded(module: Module) -> None:
    """Write `@recorded(state, impl)`: whether autograd may follow a tensor while this thread records gradients."""
    state, impl = Value(PTR, "%state"), Value(PTR, "%impl")
    c = Code(module, "recorded", [state, impl], I1, _YES)
    records, requires = c.word(state, State.TORCH_RECORDS, PTR), c.word(state, State.TORCH_REQUIRES, PTR)
    c.refuse(c.compare("icmp eq", records, Value(PTR, "null")))
    is_on = c.convert("trunc", c.value("i8", f"call i8 {records.ref}()"), I1)
    with c.alternative(c.negated(is_on)):
        c.do(f"ret i1 {_NO}")
    c.done(c.convert("trunc", c.value("i8", f"call i8 {requires.ref}({impl})"), I1))


def _numpy(c: Code, state: Value, room: Sequence[Value], given: Value, written: Value) -> None:
    data = c.word(given, 2, PTR)
    rank = c.convert("zext", c.value("i32", f"load i32, {c.offset(given, i64(24), 'i8')}, align 4"), I64)
    shape, strides, descr = c.word(given, 4, PTR), c.word(given, 5, PTR), c.word(given, 7, PTR)
    flags = c.convert("zext", c.value("i32", f"load i32, {c.offset(given, i64(64), 'i8')}, align 4"), I64)
    kind = c.convert("zext", c.value("i32", f"load i32, {c.offset(descr, i64(28), 'i8')}, align 4"), I64)
    c.refuse(c.compare("icmp ugt", kind, i64(NUMPY_KINDS - 1)))
    c.refuse(c.op("and", c.is_not(written, i64(0)), c.compare("icmp eq", c.op("and", flags, i64(0x400)), i64(0))))
    c.refuse(c.compare("icmp eq", c.op("and", flags, i64(0x100)), i64(0)))
    order = c.value("i8", f"load i8, {c.offset(descr, i64(26), 'i8')}, align 1")
    c.refuse(c.compare("icmp eq", order, Value("i8", str(ord(">")))))
    dtype = c.word(c.word(state, State.NUMPY_DTYPES, PTR), kind)
    unit = c.op("lshr", c.op("and", dtype, i64(0xFF00)), i64(11))
    c.refuse(c.compare("icmp eq", unit, i64(0)))
    c.refuse(c.compare("icmp ugt", rank, i64(MAX_RANK)))
    shift = c.call(I64, "llvm.cttz.i64", unit, Value(I1, "true"))
    _packed(c, room, (data, dtype, rank, shape, strides, shift, written, i64(0), i64(-1)))


def _packed(c: Code, room: Sequence[Value], tensor: Sequence[Value]) -> None:
    c.do(f"ret {c.call(I1, 'pack', *room, *tensor)}")


def _scalar(c: Code, state: Value, room: Sequence[Value], given: Value, kind: Value) -> None:
    """Write the words of a number or None."""
    frame, key, launch = room
    words, launched = c.word(frame, Frame.KEY), c.word(frame, Frame.LAUNCH)

    def leave(tag: int, value: Value | None, is_passed: bool = True) -> None:
        c.put(key, words, i64(tag))
        if value is not None:
            c.put(key, c.op("add", words, i64(1)), value)
        if value is not None and is_passed:
            c.put(launch, launched, i64(0))
            c.put(frame, Frame.LAUNCH, c.op("add", launched, i64(1)))
        c.put(frame, Frame.KEY, c.op("add", words, i64(1 + (value is not None))))
        c.do(f"ret i1 {_YES}")

    with c.alternative(c.compare("icmp eq", kind, c.word(state, State.FLOAT))):
        number = c.call("double", "PyFloat_AsDouble", given)
        leave(FLOAT, c.value(I64, f"bitcast {number} to i64"))
    with c.alternative(c.compare("icmp eq", kind, c.word(state, State.BOOL))):
        truth = c.compare("icmp eq", c.number(given), c.word(state, State.TRUE))
        leave(BOOL, c.convert("zext", truth, I64))
    with c.alternative(c.compare("icmp eq", kind, c.word(state, State.INT))):
        overflow = c.frame_bytes(8)
        whole = c.call(I64, "PyLong_AsLongLongAndOverflow", given, overflow)
        over = c.value("i32", f"load i32, {overflow}, align 4")
        c.refuse(c.compare("icmp ne", over, Value("i32", "0")))
        leave(INTEGER, whole)
    with c.alternative(c.compare("icmp eq", c.number(given), c.word(state, State.NONE))):
        leave(NONE, None)
    leave(ITSELF, c.number(given), is_passed=False)
    c.begin(c.out)
    c.finish(c.no)


def _find(module: Module) -> None:
    """Write `@find(state, frame, key)`: the first entry for a key for which everything holds, or null."""
    state, frame, key = (Value(PTR, f"%{n}") for n in ("state", "frame", "key"))
    c = Code(module, "find", [state, frame, key], PTR, "null")
    count = c.word(frame, Frame.KEY)
    with c.each(c.word(state, State.GROUPS), c.word(state, State.GROUP_TABLE, PTR), len(Group)) as group:
        with c.when(c.compare("icmp eq", c.word(group, Group.WORDS), count)):
            mask, table, last = (
                c.word(group, Group.MASK, PTR),
                c.word(group, Group.TABLE, PTR),
                c.word(group, Group.LAST),
            )
            hashed = c.open_loop(i64(0), count, i64(1), [i64(HASH_SEED)])
            word = c.op("and", c.word(key, hashed.index), c.word(mask, hashed.index))
            (digest,) = c.close_loop(hashed, [c.mixed(hashed.values[0], word)])
            walk = c.open_loop(c.op("and", digest, last), i64(1 << 62), i64(1))
            entry = c.word(table, c.op("and", walk.index, last), PTR)
            stop, check, following = c.label("stop"), c.label("check"), c.label("following")
            c.do(f"br {c.compare('icmp eq', entry, Value(PTR, 'null'))}, label %{stop}, label %{check}")
            c.begin(check)
            equal, found, whole = c.label("equal"), c.label("found"), c.label("whole")
            c.do(f"br {c.compare('icmp eq', c.word(entry, Entry.HASH), digest)}, label %{equal}, label %{following}")
            c.begin(equal)
            theirs = c.word(entry, Entry.KEY, PTR)
            differs = c.open_loop(i64(0), count, i64(1), [i64(0)])
            mine = c.op("and", c.word(key, differs.index), c.word(mask, differs.index))
            (difference,) = c.close_loop(
                differs, [c.op("or", differs.values[0], c.op("xor", mine, c.word(theirs, differs.index)))]
            )
            c.do(f"br {c.compare('icmp eq', difference, i64(0))}, label %{found}, label %{following}")
            c.begin(found)
            c.do(f"br {c.call(I1, 'holds', entry, key)}, label %{whole}, label %{following}")
            c.begin(whole)
            c.do(f"ret {entry}")
            c.begin(following)
            c.close_loop(walk)
            c.do(f"br label %{stop}")
            c.begin(stop)
    c.done(Value(PTR, "null"))


def _holds(module: Module) -> None:
    """Write `@holds(entry, key)`: whether everything an entry was compiled from is as it was."""
    entry, key = Value(PTR, "%found"), Value(PTR, "%key")
    c = Code(module, "holds", [entry, key], I1, _NO)
    with c.each(c.word(entry, Entry.FIELDS), c.word(entry, Entry.FIELD_TABLE, PTR), 2) as pair:
        c.refuse(c.is_not(c.load(I64, c.word(pair, 0, PTR), 8), c.word(pair, 1)))
    with c.each(c.word(entry, Entry.SAME), c.word(entry, Entry.SAME_TABLE, PTR), 2) as pair:
        c.refuse(c.is_not(c.word(key, c.word(pair, 0)), c.word(key, c.word(pair, 1))))
    with c.each(c.word(entry, Entry.WATCHES), c.word(entry, Entry.WATCH_TABLE, PTR), len(Watch)) as watch:
        c.refuse(c.negated(c.call(I1, "watch", watch)))
    with c.each(c.word(entry, Entry.PROBES), c.word(entry, Entry.PROBE_TABLE, PTR), 4) as probe:
        c.refuse(c.negated(c.call(I1, "probe", probe)))
    c.done(Value(I1, _YES))


def _overlaps(module: Module) -> None:
    """Write `@apart(frame, ranges)`: whether no tensor that is written may share memory with another."""
    frame, ranges = Value(PTR, "%frame"), Value(PTR, "%ranges")
    c = Code(module, "apart", [frame, ranges], I1, _NO)
    count = c.word(frame, Frame.TENSORS)
    with c.loop(i64(0), count, i64(1)) as one:
        mine = c.offset(ranges, c.op("mul", one, i64(3)), I64)
        with c.when(c.is_not(c.word(mine, 2), i64(0))):
            with c.loop(i64(0), count, i64(1)) as other:
                theirs = c.offset(ranges, c.op("mul", other, i64(3)), I64)
                before = c.compare("icmp ult", c.word(mine, 0), c.word(theirs, 1))
                after = c.compare("icmp ult", c.word(theirs, 0), c.word(mine, 1))
                meets = c.op("and", c.op("and", before, after), c.is_not(one, other))
                c.refuse(meets)
    c.done(Value(I1, _YES))


_GIVEN = {Context.PARALLEL: State.PARALLEL, Context.LOOK: State.LOOK}
"""The words of a context that a kernel's state gives; the others start as 0."""


def _run(module: Module) -> None:
    """Write `@run(state, entry, frame, launch)`: the program called; its first error's number, and what to free."""
    state, entry, frame, launch, context = (
        Value(PTR, f"%{n}") for n in ("state", "found", "frame", "launch", "context")
    )
    c = Code(module, "run", [state, entry, frame, launch, context], "void", "")
    with c.each(c.word(entry, Entry.SCALARS), c.word(entry, Entry.SCALAR_TABLE, PTR), 2) as pair:
        c.put(launch, c.word(pair, 0), c.word(pair, 1))
    for word in Context:
        c.put(context, word, c.word(state, _GIVEN[word]) if word in _GIVEN else i64(0))
    function = c.word(entry, Entry.FUNCTION, PTR)
    large = c.compare("icmp sge", c.word(frame, Frame.BYTES), i64(RELEASE_BYTES))
    alone, shared, end = c.label("alone"), c.label("shared"), c.label("end")
    c.do(f"br {large}, label %{alone}, label %{shared}")
    c.begin(alone)
    thread = c.call(PTR, "PyEval_SaveThread")
    c.do(f"call void {function.ref}({launch}, {context})")
    c.invoke("PyEval_RestoreThread", thread)
    c.do(f"br label %{end}")
    c.begin(shared)
    c.do(f"call void {function.ref}({launch}, {context})")
    c.do(f"br label %{end}")
    c.begin(end)
    c.finish()


def _arrange(module: Module) -> None:
    """Write `@arrange(state, args, count, names, placed)`: arguments by parameter, those left out by their defaults.

    Defaults are taken as the function has them at this moment, and only such as are copied at once: whoever replaces
    them meanwhile takes no argument away.
    """
    state, args, names, placed = (Value(PTR, f"%{n}") for n in ("state", "args", "names", "placed"))
    count = Value(I64, "%count")
    c = Code(module, "arrange", [state, args, count, names, placed], I1, _NO)
    params, nothing = c.word(state, State.PARAMS), Value(PTR, "null")
    c.refuse(c.compare("icmp sgt", count, params))
    c.refuse(c.compare("icmp sgt", params, i64(MAX_PARAMS)))
    with c.loop(i64(0), count, i64(1)) as index:
        c.put(placed, index, c.word(args, index, PTR))
    with c.loop(count, params, i64(1)) as index:
        c.put(placed, index, nothing)
    with c.when(c.is_not(names, nothing)):
        table = c.word(state, State.NAMES, PTR)
        with c.loop(i64(0), c.word(names, TUPLE_SIZE), i64(1)) as index:
            name = c.word(c.offset(names, i64(TUPLE_ITEMS), I64), index, PTR)
            found = c.slot(I64)
            c.store(i64(-1), found, 8)
            with c.loop(count, params, i64(1)) as place:
                same = c.compare("icmp eq", c.word(table, place, PTR), name)
                c.store(c.select(same, place, c.load(I64, found, 8)), found, 8)
            place = c.load(I64, found, 8)
            c.refuse(c.compare("icmp slt", place, i64(0)))
            c.put(placed, place, c.word(args, c.op("add", count, index), PTR))
    with c.loop(count, params, i64(1)) as index:
        with c.when(c.compare("icmp eq", c.word(placed, index, PTR), nothing)):
            slot = c.word(state, State.DEFAULTS, PTR)
            c.refuse(c.compare("icmp eq", slot, nothing))
            defaults = c.word(slot, 0, PTR)
            c.refuse(c.compare("icmp eq", defaults, nothing))
            missing = c.op("sub", params, c.word(defaults, TUPLE_SIZE))
            c.refuse(c.compare("icmp slt", index, missing))
            items = c.offset(defaults, i64(TUPLE_ITEMS), I64)
            value = c.word(items, c.op("sub", index, missing), PTR)
            kind = c.word(value, 1)
            is_copied = c.compare("icmp eq", c.number(value), c.word(state, State.NONE))
            for copied in (State.FLOAT, State.INT, State.BOOL, State.STR):
                is_copied = c.op("or", is_copied, c.compare("icmp eq", kind, c.word(state, copied)))
            c.refuse(c.negated(is_copied))
            c.put(placed, index, value)
    c.done(Value(I1, _YES))


TUPLE_SIZE, TUPLE_ITEMS = 2, 3
"""Which word of a tuple says how many items it has, and where they start."""

OBJECT_TYPE, TYPE_VECTORCALL = 1, 7
"""Which word of an object is its type, and which of a type says where its instances keep how they are called."""


def _dispatch(module: Module) -> None:
    """Write `@dispatch(self, args, count, names)`, what CPython calls."""
    self, args, names = (Value(PTR, f"%{n}") for n in ("self", "args", "names"))
    count = Value(I64, "%count")
    c = Code(module, "dispatch", [self, args, count, names], PTR, "")
    c.head = c.head.replace("internal ", "")
    state = c.word(self, 2, PTR)  # the pointer of a capsule
    slow = c.out
    _count_active(c, state, 1)
    params = c.word(state, State.PARAMS)
    placed, given_by = c.frame_bytes(8 * MAX_PARAMS), c.slot(PTR)
    c.store(args, given_by, 8)
    unusual = c.op("or", c.is_not(names, Value(PTR, "null")), c.is_not(count, params))
    with c.when(unusual):
        c.refuse(c.negated(c.call(I1, "arrange", state, args, count, names, placed)))
        c.store(placed, given_by, 8)
    ask = c.word(state, State.GET_THREADS, PTR)
    with c.when(c.is_not(ask, Value(PTR, "null"))):
        threads = c.convert("sext", c.value("i32", f"call i32 {ask.ref}()"), I64)
        c.refuse(c.is_not(threads, c.word(state, State.THREADS)))
    with c.each(c.word(state, State.WATCHES), c.word(state, State.WATCH_TABLE, PTR), len(Watch)) as watch:
        c.refuse(c.negated(c.call(I1, "watch", watch)))
    c.refuse(c.call(I1, "watched", state))
    frame, key = c.frame_bytes(8 * len(Frame)), c.frame_bytes(8 * KEY_WORDS)
    launch = c.frame_bytes(8 * (LAUNCH_WORDS + RESULT_WORDS))
    ranges, context = c.frame_bytes(24 * MAX_PARAMS), c.frame_bytes(8 * len(Context))
    for word in Frame:
        c.put(frame, word, i64(0))
    values = c.load(PTR, given_by, 8)
    with c.loop(i64(0), params, i64(1)) as index:
        written = c.op("and", c.op("lshr", c.word(state, State.WRITTEN), index), i64(1))
        given = c.word(values, index, PTR)
        c.refuse(c.negated(c.call(I1, "argument", state, frame, key, launch, ranges, given, written)))
    entry = c.call(PTR, "find", state, frame, key)
    c.refuse(c.compare("icmp eq", entry, Value(PTR, "null")))
    c.refuse(c.negated(c.call(I1, "apart", frame, ranges)))
    c.invoke("run", state, entry, frame, launch, context)
    error, buffers = c.word(context, Context.ERROR), c.word(context, Context.BUFFERS)
    clean = c.compare("icmp eq", c.op("or", error, buffers), i64(0))
    fine, failed = c.label("fine"), c.label("failed")
    c.do(f"br {clean}, label %{fine}, label %{failed}")
    c.begin(fine)
    c.put(state, State.HITS, c.op("add", c.word(state, State.HITS), i64(1)))
    _count_active(c, state, -1)
    _give_back(c, state, entry, values)
    c.begin(failed)
    told = c.frame_bytes(24)
    for position, number in enumerate((error, buffers, c.word(entry, Entry.NUMBER))):
        c.put(told, position, c.call(PTR, "PyLong_FromLongLong", number))
    _count_active(c, state, -1)
    answer = c.call(PTR, "PyObject_VectorcallDict", c.word(state, State.FAILED, PTR), told, i64(3), Value(PTR, "null"))
    for position in range(3):
        c.invoke("Py_DecRef", c.word(told, position, PTR))
    c.do(f"ret {answer}")
    c.begin(slow)
    _count_active(c, state, -1)
    fallback = c.word(state, State.FALLBACK, PTR)
    c.finish(_vectorcall(c, fallback, args, count, names))


def _vectorcall(c: Code, callee: Value, *args: Value) -> Value:
    """Call a Python function or method, keywords in a tuple; Python 3.10 exports nothing that does."""
    where = c.word(c.word(callee, OBJECT_TYPE, PTR), TYPE_VECTORCALL)
    function = c.word(c.offset(callee, where, "i8"), 0, PTR)
    return c.value(PTR, f"call ptr {function.ref}({', '.join(map(str, (callee, *args)))})")


def _give_back(c: Code, state: Value, entry: Value, values: Value) -> None:
    """Return what a call gives back: None, one of its arguments, or a tuple of some."""
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
    with c.when(c.is_not(made, Value(PTR, "null"))):
        with c.loop(i64(0), count, i64(1)) as index:
            given = c.word(values, c.word(table, index), PTR)
            c.invoke("Py_IncRef", given)
            c.put(c.offset(made, i64(TUPLE_ITEMS), I64), index, given)
    c.do(f"ret {made}")


def _count_active(c: Code, state: Value, change: int) -> None:
    c.put(state, State.ACTIVE, c.op("add", c.word(state, State.ACTIVE), i64(change)))
