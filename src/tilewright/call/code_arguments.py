"""The dispatcher's arguments: tensors, arrays and numbers read as they lie, as words of keys and launches."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.call.code import NO, NULL, OBJECT_TYPE, YES, Code
from tilewright.call.code_layouts import LAYOUTS
from tilewright.call.words import (
    BOOL,
    CONFIGURED,
    DEVICE_KIND,
    DEVICE_NUMBER,
    FLOAT,
    IN_PLACE,
    INTEGER,
    ITSELF,
    LIES,
    MAX_RANK,
    NONE,
    NUMPY_KINDS,
    OF_NUMPY,
    OF_TORCH,
    TENSOR,
    TORCH_KINDS,
    TORCH_RANKS,
    Frame,
    State,
)
from tilewright.native.llvm import F32, I1, I32, I64, PTR, Module, Value, i64


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
    c = Code(module, "pack", params, I1, NO)
    one = i64(1)
    size = c.op("lshr", c.op("and", dtype, i64(0xFF00)), i64(11))
    address = c.number(data)
    c.refuse(c.is_not(c.op("and", address, c.op("sub", size, i64(1))), i64(0)))
    words, launched = c.word(frame, Frame.KEY), c.word(frame, Frame.LAUNCH)
    lies_turned = c.convert("zext", c.call(I1, "turned", rank, shape, strides, shift), I64)
    lies_in = c.call(I64, "stepped", dtype, rank, shape, strides, shift)
    lies = c.select(c.is_not(lies_turned, i64(0)), one, lies_in)
    apart = c.intrinsic("llvm.smax", lies, one)  # how far neighbours are, in the order of the launch
    tag = c.op("or", c.op("or", i64(TENSOR), c.op("shl", rank, i64(32))), dtype)
    c.put(key, words, c.op("or", tag, c.op("shl", lies, i64(LIES))))
    c.put(launch, launched, address)
    extents = c.op("add", launched, i64(1))
    steps = c.op("add", extents, rank)
    last = c.op("sub", rank, i64(1))
    before = c.op("sub", last, lies_turned)
    reach, count = c.slot(I64), c.slot(I64)
    c.store(i64(0), reach, 8)
    c.store(i64(1), count, 8)
    with c.loop(i64(0), rank, i64(1)) as axis:
        extent = c.word(shape, axis)
        raw = c.word(strides, axis)
        step = c.op("ashr", raw, shift)
        c.refuse(c.is_not(c.op("shl", step, shift), raw))
        at = c.select(
            c.compare("icmp eq", axis, before), last, c.select(c.compare("icmp eq", axis, last), before, axis)
        )
        is_last = c.compare("icmp eq", at, last)
        short = c.compare("icmp sle", extent, i64(1))
        gaps = c.op("and", c.op("and", is_last, c.negated(short)), c.is_not(step, apart))
        backward = c.op("and", c.negated(short), c.compare("icmp slt", step, i64(0)))
        c.refuse(c.op("or", gaps, backward))
        c.put(key, c.op("add", c.op("add", words, i64(1)), axis), extent)
        c.put(launch, c.op("add", extents, at), extent)
        c.put(launch, c.op("add", steps, at), c.select(is_last, apart, step))
        along = c.op("mul", c.op("sub", extent, i64(1)), step)
        c.store(c.op("add", c.load(I64, reach, 8), c.select(short, i64(0), along)), reach, 8)
        c.store(c.op("mul", c.load(I64, count, 8), extent), count, 8)
    with c.when(c.is_not(written, i64(0))):
        launched_as = (c.offset(launch, words, I64) for words in (extents, steps))
        c.refuse(c.negated(c.call(I1, "spread", rank, *launched_as)))
    c.put(frame, Frame.KEY, c.op("add", c.op("add", words, i64(1)), rank))
    c.put(frame, Frame.LAUNCH, c.op("add", steps, rank))
    elements = c.load(I64, count, 8)
    of_host = c.select(c.compare("icmp ult", dtype, i64(1 << DEVICE_KIND)), size, i64(0))  # a launch is soon over
    c.put(frame, Frame.BYTES, c.op("add", c.word(frame, Frame.BYTES), c.op("mul", elements, of_host)))
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
    c.done(Value(I1, YES))


def _argument(module: Module) -> None:
    """Write `@argument(state, frame, key, launch, ranges, object, written, flat)`: one argument's words."""
    state, frame, key, launch, ranges, given = (
        Value(PTR, f"%{n}") for n in ("state", "frame", "key", "launch", "ranges", "given")
    )
    written, flat = Value(I64, "%written"), Value(I64, "%flat")
    c = Code(module, "argument", [state, frame, key, launch, ranges, given, written, flat], I1, NO)
    kind = c.word(given, 1)
    torch, numpy, scalar = c.label("torch"), c.label("numpy"), c.label("scalar")
    other = c.label("other")
    plain = c.compare("icmp eq", kind, c.word(state, State.TORCH_TENSOR))
    learned = c.compare("icmp eq", kind, c.word(state, State.TORCH_PARAMETER))
    c.do(f"br {c.op('or', plain, learned)}, label %{torch}, label %{other}")
    c.begin(other)
    c.do(f"br {c.compare('icmp eq', kind, c.word(state, State.NDARRAY))}, label %{numpy}, label %{scalar}")
    c.begin(torch)
    _torch(c, state, (frame, key, launch, ranges), given, (written, flat))
    c.begin(numpy)
    _numpy(c, state, (frame, key, launch, ranges), given, (written, flat))
    c.begin(scalar)
    _scalar(c, state, (frame, key, launch), given, kind)


def _torch(c: Code, state: Value, room: Sequence[Value], given: Value, how: tuple[Value, Value]) -> None:
    written, flat = how
    impl = c.pointer(c.at(given, c.word(state, State.TORCH_IMPL)))
    keys = c.at(impl, c.word(state, State.TORCH_KEYS))
    is_host = _either(c, keys, state, State.TORCH_PLAIN, State.TORCH_INFERENCE)
    is_cuda = _either(c, keys, state, State.TORCH_CUDA_PLAIN, State.TORCH_CUDA_INFERENCE)
    c.refuse(c.negated(c.op("or", is_host, is_cuda)))
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
    dtype = c.op("or", dtype, c.select(is_cuda, _device(c, state, impl), i64(0)))
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
    _packed(c, room, (data, dtype, rank, shape, strides, i64(0), written, low, high), flat, OF_TORCH)


def _either(c: Code, word: Value, state: Value, *places: State) -> Value:
    """Return whether a word is one of two of the state's."""
    first, second = (c.compare("icmp eq", word, c.word(state, place)) for place in places)
    return c.op("or", first, second)


def _device(c: Code, state: Value, impl: Value) -> Value:
    """Return what a tensor's device adds to the first word of its key."""
    both = c.convert("zext", c.at(impl, c.word(state, State.TORCH_DEVICE), "i16"), I64)
    kind = c.op("shl", c.op("and", both, i64(0xFF)), i64(DEVICE_KIND))
    return c.op("or", kind, c.op("shl", c.op("add", c.op("lshr", both, i64(8)), i64(1)), i64(DEVICE_NUMBER)))


def _recorded(module: Module) -> None:
    """Write `@recorded(state, impl)`: whether autograd may follow a tensor while this thread records gradients."""
    state, impl = Value(PTR, "%state"), Value(PTR, "%impl")
    c = Code(module, "recorded", [state, impl], I1, YES)
    records, requires = c.word(state, State.TORCH_RECORDS, PTR), c.word(state, State.TORCH_REQUIRES, PTR)
    c.refuse(c.compare("icmp eq", records, Value(PTR, "null")))
    is_on = c.convert("trunc", c.value("i8", f"call i8 {records.ref}()"), I1)
    with c.alternative(c.negated(is_on)):
        c.do(f"ret i1 {NO}")
    c.done(c.convert("trunc", c.value("i8", f"call i8 {requires.ref}({impl})"), I1))


def _numpy(c: Code, state: Value, room: Sequence[Value], given: Value, how: tuple[Value, Value]) -> None:
    written, flat = how
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
    _packed(c, room, (data, dtype, rank, shape, strides, shift, written, i64(0), i64(-1)), flat, OF_NUMPY)


def _packed(c: Code, room: Sequence[Value], tensor: Sequence[Value], flat: Value, framework: int) -> None:
    """Write the words of a tensor; a pointer's are those of its elements in one line."""
    frame = room[0]
    c.put(frame, Frame.FRAMEWORKS, c.op("or", c.word(frame, Frame.FRAMEWORKS), i64(framework)))
    data, dtype, rank, shape, strides, shift, *rest = tensor
    with c.alternative(c.is_not(flat, i64(0))):
        line = c.frame_bytes(16)
        c.refuse(c.negated(c.call(I1, "flatten", rank, shape, strides, shift, line)))
        step = c.offset(line, i64(1), I64)
        c.do(f"ret {c.call(I1, 'pack', *room, data, dtype, i64(1), line, step, i64(0), *rest)}")
    c.do(f"ret {c.call(I1, 'pack', *room, *tensor)}")


def _scalar(c: Code, state: Value, room: Sequence[Value], given: Value, kind: Value) -> None:
    """Write the words of a number or None."""
    frame, key, launch = room
    words, launched = c.word(frame, Frame.KEY), c.word(frame, Frame.LAUNCH)

    def leave(tag: int, value: Value | None, passed: Value | None = None) -> None:
        c.put(key, words, i64(tag))
        if value is not None:
            c.put(key, c.op("add", words, i64(1)), value)
        if passed is not None:
            c.put(launch, launched, passed)
            c.put(frame, Frame.LAUNCH, c.op("add", launched, i64(1)))
        c.put(frame, Frame.KEY, c.op("add", words, i64(1 + (value is not None))))
        c.do(f"ret i1 {YES}")

    with c.alternative(c.compare("icmp eq", kind, c.word(state, State.FLOAT))):
        number = c.call("double", "PyFloat_AsDouble", given)
        exact = c.value(I64, f"bitcast {number} to i64")
        leave(FLOAT, exact, _single(c, number, exact))
    with c.alternative(c.compare("icmp eq", kind, c.word(state, State.BOOL))):
        truth = c.compare("icmp eq", c.number(given), c.word(state, State.TRUE))
        word = c.convert("zext", truth, I64)
        leave(BOOL, word, word)
    with c.alternative(c.compare("icmp eq", kind, c.word(state, State.INT))):
        overflow = c.frame_bytes(8)
        whole = c.call(I64, "PyLong_AsLongLongAndOverflow", given, overflow)
        over = c.value("i32", f"load i32, {overflow}, align 4")
        c.refuse(c.compare("icmp ne", over, Value("i32", "0")))
        leave(INTEGER, whole, whole)
    with c.alternative(c.compare("icmp eq", c.number(given), c.word(state, State.NONE))):
        leave(NONE, None)
    leave(ITSELF, c.number(given))
    c.begin(c.out)
    c.finish(c.no)


def _single(c: Code, number: Value, exact: Value) -> Value:
    """Return a double as the word that floats are launched with, no where it is beyond the largest of those."""
    narrow = c.value(F32, f"fptrunc {number} to float")
    bits = c.value(I32, f"bitcast {narrow} to i32")
    is_infinite = c.compare("icmp eq", c.op("and", bits, Value(I32, str(0x7FFFFFFF))), Value(I32, str(0x7F800000)))
    was_infinite = c.compare("icmp eq", c.op("and", exact, i64((1 << 63) - 1)), i64(0x7FF << 52))
    c.refuse(c.op("and", is_infinite, c.negated(was_infinite)))
    return c.convert("sext", bits, I64)


def _gather(module: Module) -> None:
    """Write `@gather(state, values, style, frame, key, launch, ranges)`: the words of all arguments that are there."""
    state, values, frame, key, launch, ranges = (
        Value(PTR, f"%{n}") for n in ("state", "values", "frame", "key", "launch", "ranges")
    )
    style = Value(I64, "%style")
    c = Code(module, "gather", [state, values, style, frame, key, launch, ranges], I1, NO)
    for word in Frame:
        c.put(frame, word, i64(word == Frame.KEY))
    c.put(frame, Frame.LAUNCH, c.word(state, State.LEADING))
    c.put(key, 0, style)
    with c.loop(i64(0), c.word(state, State.PARAMS), i64(1)) as index:
        given = c.word(values, index, PTR)
        with c.when(c.is_not(given, NULL)):
            bits = (c.word(state, State.WRITTEN), c.word(state, State.POINTERS))
            how = (c.op("and", c.op("lshr", of_all, index), i64(1)) for of_all in bits)
            c.refuse(c.negated(c.call(I1, "argument", state, frame, key, launch, ranges, given, *how)))
    with c.when(c.is_not(style, i64(IN_PLACE))):
        c.put(key, 0, c.op("or", style, c.word(frame, Frame.FRAMEWORKS)))
    c.done(Value(I1, YES))


def _configured(module: Module) -> None:
    """Write `@configured(state, config, frame, key)`: a configuration's options as the last words of a key.

    Each is what a slot refers to at this moment, an object that an entry of this key keeps; no where it is none of the
    class that is read.
    """
    state, config, frame, key = (Value(PTR, f"%{n}") for n in ("state", "config", "frame", "key"))
    c = Code(module, "configured", [state, config, frame, key], I1, NO)
    with c.alternative(c.compare("icmp eq", config, NULL)):
        c.do(f"ret i1 {YES}")
    with c.alternative(c.compare("icmp eq", c.number(config), c.word(state, State.NONE))):
        c.do(f"ret i1 {YES}")
    c.refuse(c.is_not(c.word(config, OBJECT_TYPE), c.word(state, State.CONFIG_TYPE)))
    words = c.word(frame, Frame.KEY)
    with c.loop(i64(0), c.word(state, State.OPTIONS), i64(1)) as index:
        place = c.word(c.word(state, State.OPTION_TABLE, PTR), index)
        c.put(key, c.op("add", words, index), c.at(config, place))
    c.put(frame, Frame.KEY, c.op("add", words, c.word(state, State.OPTIONS)))
    c.put(key, 0, c.op("or", c.word(key, 0), i64(CONFIGURED)))
    c.done(Value(I1, YES))


def _overlaps(module: Module) -> None:
    """Write `@apart(frame, ranges)`: whether no tensor that is written may share memory with another."""
    frame, ranges = Value(PTR, "%frame"), Value(PTR, "%ranges")
    c = Code(module, "apart", [frame, ranges], I1, NO)
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
    c.done(Value(I1, YES))


ARGUMENTS = *LAYOUTS, _overlaps, _recorded, _pack, _argument, _gather, _configured
