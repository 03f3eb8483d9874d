"""The dispatcher's lookups: the entry that a key belongs to, and whether all that it was compiled from is as it was."""

from __future__ import annotations

from tilewright.call.code import NO, OBJECT_TYPE, TUPLE_ITEMS, TUPLE_SIZE, YES, Code
from tilewright.call.words import FILE_WORDS, HASH_SEED, STATUS_WORDS, Entry, Frame, Group, Items, Probe, State, Watch
from tilewright.native.llvm import I1, I32, I64, PTR, Module, Value, i32, i64


def _watch(module: Module) -> None:
    """Write `@watch(watch)`: whether a dict still holds what it held."""
    watch = Value(PTR, "%watch")
    c = Code(module, "watch", [watch], I1, NO)
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
    c.done(Value(I1, YES))


def _probe(module: Module) -> None:
    """Write `@probe(probe)`: whether an access gives what it gave."""
    probe = Value(PTR, "%probe")
    c = Code(module, "probe", [probe], I1, NO)
    kind, owner, key, expected = (c.word(probe, k, I64 if k == 0 else PTR) for k in range(4))
    found = c.slot(PTR)
    sized, taken, attribute, item, ready = (c.label(n) for n in ("sized", "taken", "attribute", "item", "ready"))
    with c.when(c.compare("icmp eq", kind, i64(Probe.FILE))):
        _same_file(c, owner, key, expected)
    c.do(f"br {c.compare('icmp eq', kind, i64(Probe.SIZE))}, label %{sized}, label %{taken}")
    c.begin(sized)
    count = c.call(I64, "PyObject_Size", owner)
    c.refuse(c.is_not(count, c.number(expected)))
    c.do(f"ret i1 {YES}")
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
    c.done(Value(I1, YES))


def _same_file(c: Code, path: Value, stat: Value, expected: Value) -> None:
    """Write the end of a probe of a file: whether some words of its status are what they were."""
    status = c.slot(f"[{STATUS_WORDS} x i64]")
    c.refuse(c.is_not(c.value(I32, f"call i32 {stat.ref}({path}, {status})"), i32(0)))
    for number, at in enumerate(FILE_WORDS):
        c.refuse(c.is_not(c.word(status, at), c.word(expected, number)))
    c.do(f"ret i1 {YES}")
    c.begin(c.label("unreached"))


def _watched(module: Module) -> None:
    """Write `@watched(state)`: whether torch traces or transforms what this thread does, and would miss it."""
    state = Value(PTR, "%state")
    c = Code(module, "watched", [state], I1, NO)
    get = c.word(state, State.GET_THREAD_LOCAL, PTR)
    c.refuse(c.compare("icmp eq", get, Value(PTR, "null")))
    held = c.value(PTR, f"call ptr {get.ref}({c.word(state, State.TORCH_THREAD, PTR)})")
    added = c.word(held, 0)
    is_odd = c.is_not(added, c.word(state, State.THREAD_PLAIN))
    c.done(c.op("and", is_odd, c.is_not(added, c.word(state, State.THREAD_INFERENCE))))


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
    c = Code(module, "holds", [entry, key], I1, NO)
    with c.each(c.word(entry, Entry.FIELDS), c.word(entry, Entry.FIELD_TABLE, PTR), 2) as pair:
        c.refuse(c.is_not(c.load(I64, c.word(pair, 0, PTR), 8), c.word(pair, 1)))
    with c.each(c.word(entry, Entry.SAME), c.word(entry, Entry.SAME_TABLE, PTR), 2) as pair:
        c.refuse(c.is_not(c.word(key, c.word(pair, 0)), c.word(key, c.word(pair, 1))))
    with c.each(c.word(entry, Entry.RANGES), c.word(entry, Entry.RANGE_TABLE, PTR), 3) as bounds:
        number = c.word(key, c.word(bounds, 0))
        low = c.compare("icmp slt", number, c.word(bounds, 1))
        c.refuse(c.op("or", low, c.compare("icmp sgt", number, c.word(bounds, 2))))
    with c.each(c.word(entry, Entry.WATCHES), c.word(entry, Entry.WATCH_TABLE, PTR), len(Watch)) as watch:
        c.refuse(c.negated(c.call(I1, "watch", watch)))
    with c.each(c.word(entry, Entry.PROBES), c.word(entry, Entry.PROBE_TABLE, PTR), 4) as probe:
        c.refuse(c.negated(c.call(I1, "probe", probe)))
    ready = c.word(entry, Entry.READY, PTR)
    with c.when(c.is_not(ready, Value(PTR, "null"))):
        c.refuse(c.compare("icmp eq", c.value(I64, f"call i64 {ready.ref}()"), i64(0)))
    c.done(Value(I1, YES))


def _item(module: Module) -> None:
    """Write `@item(self, spec)`, what CPython calls for `thing[number, None]`; the fallback takes all other specs."""
    self, spec = Value(PTR, "%self"), Value(PTR, "%spec")
    c = Code(module, "item", [self, spec], PTR, "")
    c.head = c.head.replace("internal ", "")
    state = c.word(self, 2, PTR)  # where the words of a ctypes array lie
    c.refuse(c.is_not(c.word(spec, OBJECT_TYPE), c.word(state, Items.TUPLE)))
    c.refuse(c.is_not(c.word(spec, TUPLE_SIZE), i64(2)))
    number, other = c.word(spec, TUPLE_ITEMS, PTR), c.word(spec, TUPLE_ITEMS + 1)
    c.refuse(c.is_not(other, c.word(state, Items.NONE)))
    c.refuse(c.is_not(c.word(number, OBJECT_TYPE), c.word(state, Items.INT)))
    whole = c.call(I64, "PyLong_AsLongLongAndOverflow", number, c.frame_bytes(8))  # no item has the -1 of too large
    with c.each(c.word(state, Items.COUNT), c.word(state, Items.TABLE, PTR), 2) as pair:
        with c.alternative(c.compare("icmp eq", c.word(pair, 0), whole)):
            item = c.word(pair, 1, PTR)
            c.invoke("Py_IncRef", item)
            c.do(f"ret {item}")
    c.do(f"br label %{c.out}")
    c.begin(c.out)
    given, null = c.frame_bytes(8), Value(PTR, "null")
    c.put(given, 0, spec)
    fallback = c.word(state, Items.FALLBACK, PTR)
    c.finish(c.call(PTR, "PyObject_VectorcallDict", fallback, given, i64(1), null))


LOOKUPS = _watch, _probe, _holds, _watched, _find, _item
