"""Tables: the words that the native dispatcher works on, filled from Python."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from enum import Enum
from functools import cache
from typing import TYPE_CHECKING, Any

from tilewright.arrays import np
from tilewright.backends.abi import signed
from tilewright.call import words as code
from tilewright.call.dlpack import DLPACK
from tilewright.call.guards import Guards, field_offset, version_offset
from tilewright.call.words import HASH_FACTOR, HASH_SEED, Entry, Group, Items, Probe, State, Watch
from tilewright.frontend.value_keys import MISSING, kind_of
from tilewright.native.threads import parallel_address
from tilewright.records import mutable

if TYPE_CHECKING:  # which only traced calls need
    from tilewright.native.traced_regions import Recorder

MASK = (1 << 64) - 1


def dtype_word(name: str) -> int | None:
    """Return an element type as DLPack has it in one word, None for one that calls do not bring."""
    kind = DLPACK.get(name)
    return None if kind is None else kind[0] | kind[1] << 8 | 1 << 16


@cache
def numpy_dtypes() -> Any:
    """Return the DLPack word of each of NumPy's own types, by its number."""
    table = (ctypes.c_int64 * code.NUMPY_KINDS)()
    for name in DLPACK:
        plain = {"fp16": "float16", "fp32": "float32", "fp64": "float64"}.get(name, name)
        if plain in np.sctypeDict and (number := np.dtype(plain).num) < code.NUMPY_KINDS:
            table[number] = dtype_word(name) or 0
    long = np.dtype("longlong").num  # as wide as int64, and another type to NumPy
    table[long], table[long + 1] = dtype_word("int64") or 0, dtype_word("uint64") or 0
    return table


def words(numbers: Sequence[int]) -> Any:
    """Return numbers as a table of 64-bit words."""
    return (ctypes.c_int64 * max(len(numbers), 1))(*(signed(n) for n in numbers))


def address(table: Any) -> int:
    """Return where a table lies."""
    return ctypes.addressof(table)


def digest(key: Sequence[int]) -> int:
    """Return the hash of a masked key, as the dispatcher computes it."""
    value = HASH_SEED
    for word in key:
        product = ((value ^ (word & MASK)) * HASH_FACTOR) & MASK
        value = product ^ product >> 29
    return value


def is_itself(value: object) -> bool:
    """Return whether a constant is told by being the same object: it never changes, and mostly is the same one."""
    return type(value) is str or (isinstance(value, Enum) and not isinstance(value, (int, float)))


def watch_words(watched: Sequence[tuple[dict[Any, Any], Mapping[Any, Any]]], keep: list[Any]) -> Any:
    """Return a table of watches: dicts, and what each must hold by key; `MISSING` for nothing."""
    table: list[int] = []
    for holder, items in watched:
        pairs = words([n for key, value in items.items() for n in (id(key), 0 if value is MISSING else id(value))])
        keep += [holder, items, pairs]
        table += [id(holder), 0, len(items), address(pairs), version_offset()]
    assert len(table) == len(watched) * len(Watch)
    keep.append(found := words(table))
    return found


class StateWords(ctypes.c_int64 * len(State)):  # pyright: ignore[reportUntypedBaseClass]
    """A kernel's state; the dispatcher's `self`, which keeps everything it points to alive."""


class ItemWords(ctypes.c_int64 * len(Items)):  # pyright: ignore[reportUntypedBaseClass]
    """What items of an object are found by; it keeps everything it points to alive."""


def item_words(items: Mapping[int, object], fallback: Callable[[Any], Any]) -> Any:
    """Return what an object's items are found by: their numbers, and what looks for all others."""
    table = words([word for number, item in items.items() for word in (number, id(item))])
    state: Any = ItemWords()
    filled = {
        Items.TUPLE: id(tuple), Items.INT: id(int), Items.NONE: id(None),
        Items.COUNT: len(items), Items.TABLE: address(table), Items.FALLBACK: id(fallback),
    }  # fmt: skip
    for place, word in filled.items():
        state[place] = word
    state.keep = items, table, fallback
    return state


@mutable
class Target:
    """One entry to be found: its key, which words of it count, the program, and what must hold."""

    key: Sequence[int]
    mask: Sequence[int]
    function: int
    guards: Guards
    scalars: Sequence[tuple[int, int]] = ()
    same: Sequence[tuple[int, int]] = ()
    keep: list[Any] = field(default_factory=list[Any])
    returns: Sequence[int] = ()
    """The parameters that a call gives back, by number."""
    ranges: Sequence[tuple[int, int, int]] = ()
    """Key words that any number within some may be."""
    makers: Sequence[tuple[Callable[[], Any], int, int]] = ()
    """What makes the outputs that a call leaves out: a function, a parameter, and which tensor to clear, or -1."""
    threads: int = 0
    """How many threads the program runs on, 0 where the settings say."""
    recorder: Recorder | None = None
    """What puts calls on a timeline, None where nobody asks for one."""

    @property
    def masked(self) -> list[int]:
        """The key with the words that do not count left out."""
        return [word & mask for word, mask in zip(self.key, self.mask, strict=True)]

    def table(self, number: int) -> Any:
        """Return the words of an entry that goes by a number; everything they point to stays in `keep`."""
        key, fields = words(self.masked), field_words(self.guards)
        watches = watch_words(self.guards.watched, self.keep)
        makers = [(id(make), parameter, number) for make, parameter, number in self.makers]
        rows = [_flat(found) for found in (fields, self.scalars, self.same, self.ranges, makers)]
        probes = words([n for probe in self.guards.probes for n in self._probe(*probe)])
        returns = words(self.returns)
        made = words([0] * len(Entry))
        filled = {
            Entry.HASH: digest(self.masked), Entry.KEY: address(key), **self._code(),
            Entry.NUMBER: number, Entry.WATCHES: len(self.guards.watched), Entry.WATCH_TABLE: address(watches),
            Entry.FIELDS: len(fields), Entry.FIELD_TABLE: address(rows[0]),
            Entry.SCALARS: len(self.scalars), Entry.SCALAR_TABLE: address(rows[1]),
            Entry.SAME: len(self.same), Entry.SAME_TABLE: address(rows[2]),
            Entry.PROBES: len(self.guards.probes), Entry.PROBE_TABLE: address(probes),
            Entry.RETURNS: len(self.returns), Entry.RETURN_TABLE: address(returns),
            Entry.RANGES: len(self.ranges), Entry.RANGE_TABLE: address(rows[3]),
            Entry.MAKERS: len(makers), Entry.MAKER_TABLE: address(rows[4]),
        }  # fmt: skip
        for place, value in filled.items():
            made[place] = signed(value)
        self.keep += [key, *rows, probes, returns, self.guards, self.makers, self.recorder, made]
        return made

    def _probe(self, kind: Probe, owner: Any, key: Any, expected: Any) -> tuple[int, int, int, int]:
        """Return the words of a probe; those of a file are kept."""
        if kind is Probe.FILE:
            path, known = ctypes.create_string_buffer(expected), words(owner.words)
            self.keep += [path, known]
            return kind, address(path), ctypes.cast(key, ctypes.c_void_p).value or 0, address(known)
        return kind, id(owner), id(key), expected if isinstance(expected, int) and key is None else id(expected)

    def _code(self) -> dict[Entry, int]:
        """Return what is called, and what it is told of its surroundings."""
        if self.recorder is None:
            parallel = parallel_address(self.threads) if self.threads else 0
            return {Entry.FUNCTION: self.function, Entry.PARALLEL: parallel, Entry.THREADS: self.threads}
        found = self.recorder
        called = {Entry.FUNCTION: found.entered, Entry.PROGRAM: self.function, Entry.READY: found.ready}
        return {**called, Entry.PARALLEL: found.address, Entry.THREADS: self.threads}


def _flat(rows: Sequence[Sequence[int]]) -> Any:
    return words([number for row in rows for number in row])


def field_words(guards: Guards) -> list[tuple[int, int]]:
    """Return where the words lie that must stay, and what they are."""
    references = [
        (id(owner) + field_offset(kind_of(owner), name), 0 if value is None and name in NULL else id(value))
        for owner, name, value in guards.fields
    ]
    return references + [(id(holder) + version_offset(), version) for holder, version in guards.versions]


NULL = ("__defaults__", "__kwdefaults__")
"""What a function refers to by nothing at all where Python says None."""


@mutable
class Lookup:
    """The entries of one kernel in groups, each a hash table.

    A call may be looking while entries change, wherever it lets other threads run. What it may look at is put aside,
    not away, until no call is under way.
    """

    entries: dict[tuple[int, ...], tuple[Target, Any]] = field(
        default_factory=dict[tuple[int, ...], tuple[Target, Any]]
    )
    """By the number of a program and its key; the words go with what they were made from."""
    tables: list[Any] = field(default_factory=list[Any])
    slots: dict[tuple[int, ...], Any] = field(default_factory=dict[tuple[int, ...], Any])
    """The hash table of each group, by the mask its entries share."""
    room: dict[tuple[int, ...], int] = field(default_factory=dict[tuple[int, ...], int])
    """How many more entries each table takes before it is half full."""
    aside: list[Any] = field(default_factory=list[Any])

    def put(self, number: int, target: Target, state: Any) -> None:
        """Let the dispatcher find an entry by a program's number, in place of the one it had."""
        mask, name = tuple(target.mask), (number, *target.masked)
        known = self.entries.get(name)
        self.entries[name] = target, (entry := target.table(number))
        if known is None and self.room.get(mask, 0):
            self.room[mask] -= 1
            _insert(self.slots[mask], entry, len(self.slots[mask]) - 1)
        else:
            self._rebuild(state, known)

    def known(self, number: int, masked: Sequence[int]) -> Target | None:
        """Return the entry that a program has for a key, or None."""
        found = self.entries.get((number, *masked))
        return None if found is None else found[0]

    def forget(self, state: Any) -> None:
        """Leave out the entries for return-style and configured calls."""
        self.entries = {name: entry for name, entry in self.entries.items() if entry[0].key[0] == code.IN_PLACE}
        self._rebuild(state, None)

    def _rebuild(self, state: Any, replaced: object) -> None:
        """Lay all entries out anew, in tables with room for as many again."""
        old = [self.tables, replaced]
        groups: dict[tuple[int, ...], list[Any]] = {}
        for known, table in self.entries.values():
            groups.setdefault(tuple(known.mask), []).append(table)
        self.slots = {mask: _hashed(entries) for mask, entries in groups.items()}
        self.room = {mask: len(self.slots[mask]) // 2 - len(entries) for mask, entries in groups.items()}
        self.tables = list(_tables(self.slots))
        self.aside += old
        state[State.GROUPS] = 0  # in this order: another thread sees none of them, or as many as there are
        state[State.GROUP_TABLE] = address(self.tables[-1])
        state[State.GROUPS] = len(groups)
        if not state[State.ACTIVE]:
            self.aside = []


def _hashed(entries: Sequence[Any]) -> Any:
    """Return a table in which entries are found by their hash, at most a quarter full."""
    slots = words([0] * (1 << max(3, (4 * len(entries) - 1).bit_length())))
    for entry in entries:
        _insert(slots, entry, len(slots) - 1)
    return slots


def _tables(groups: Mapping[tuple[int, ...], Any]) -> Iterator[Any]:
    """Yield the tables that groups lie in, the one that leads to all others last."""
    rows: list[int] = []
    for mask, slots in groups.items():
        held = words(mask)
        yield from (slots, held)
        rows += [len(mask), address(held), address(slots), len(slots) - 1]
    assert len(rows) == len(groups) * len(Group)
    yield words(rows)


def _insert(slots: Any, entry: Any, last: int) -> None:
    place = entry[Entry.HASH] & last
    while slots[place]:
        place = (place + 1) & last
    slots[place] = address(entry)


def environment() -> dict[Any, Any]:
    """Return the dict behind `os.environ`, whose values are as the system has them."""
    return os.environ._data  # pyright: ignore[reportPrivateUsage, reportUnknownMemberType, reportAttributeAccessIssue, reportUnknownVariableType]
