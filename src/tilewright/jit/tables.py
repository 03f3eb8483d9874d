"""Tables: the words that the native dispatcher works on, filled from Python."""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from tilewright.arrays import np
from tilewright.backends.cpu import dispatch as code
from tilewright.backends.cpu.dispatch import HASH_FACTOR, HASH_SEED, Entry, Group, State, Watch
from tilewright.frontend.signature import Given, Known, TensorMeta

MASK = (1 << 64) - 1

DLPACK = {
    "bool": (6, 8), "fp16": (2, 16), "fp32": (2, 32), "bfloat16": (4, 16),
    "int8": (0, 8), "int16": (0, 16), "int32": (0, 32), "int64": (0, 64),
    "uint8": (1, 8), "uint16": (1, 16), "uint32": (1, 32), "uint64": (1, 64),
}  # fmt: skip
"""What DLPack calls each element type: the code of its kind, and its bits."""


def dtype_word(name: str) -> int | None:
    """Return an element type as DLPack has it in one word, None for one that calls do not bring."""
    kind = DLPACK.get(name)
    return None if kind is None else kind[0] | kind[1] << 8 | 1 << 16


@cache
def numpy_dtypes() -> Any:
    """Return the DLPack word of each of NumPy's own types, by its number."""
    table = (ctypes.c_int64 * code.NUMPY_KINDS)()
    for name in DLPACK:
        plain = {"fp16": "float16", "fp32": "float32"}.get(name, name)
        if name != "bfloat16" and (number := np.dtype(plain).num) < code.NUMPY_KINDS:
            table[number] = dtype_word(name) or 0
    long = np.dtype("longlong").num  # as wide as int64, and another type to NumPy
    table[long], table[long + 1] = dtype_word("int64") or 0, dtype_word("uint64") or 0
    return table


def words(numbers: Sequence[int]) -> Any:
    """Return numbers as a table of 64-bit words."""
    return (ctypes.c_int64 * max(len(numbers), 1))(*(_signed(n) for n in numbers))


def _signed(number: int) -> int:
    number &= MASK
    return number - (1 << 64) if number >> 63 else number


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


def key_words(given: Sequence[Given]) -> list[int] | None:
    """Return the words that arguments add to a key, None for arguments that the dispatcher leaves to Python."""
    result: list[int] = []
    for one in given:
        added = _tensor_words(one) if isinstance(one, TensorMeta) else _scalar_words(one)
        if added is None:
            return None
        result += added
    return result


def _tensor_words(meta: TensorMeta) -> list[int] | None:
    dtype = dtype_word(meta.dtype.name)
    extents = [extent for extent in meta.shape if isinstance(extent, int)]
    if dtype is None or len(extents) != len(meta.shape) or len(extents) > code.MAX_RANK:
        return None
    return [code.TENSOR | len(extents) << 32 | dtype, *extents]


def _scalar_words(given: Given) -> list[int] | None:
    value = given.value if isinstance(given, Known) else MASK
    if value is None:
        return [code.NONE]
    if type(value) is bool:
        return [code.BOOL, int(value)]
    if type(value) is float:
        return [code.FLOAT, struct.unpack("<q", struct.pack("<d", value))[0]]
    if type(value) is int and -(1 << 63) <= value < 1 << 63 and isinstance(given, Known):
        return [code.INTEGER, value]
    return None


@cache
def _version_offset() -> int:
    """Return where in a dict its version lies, 0 where this Python has none that moves with each change."""
    sample: dict[str, int] = {"a": 1}
    place = 24
    seen = {ctypes.c_uint64.from_address(id(sample) + place).value}
    for value in (2, 3):
        sample["a"] = value
        seen.add(ctypes.c_uint64.from_address(id(sample) + place).value)
    return place if sys.implementation.name == "cpython" and sys.version_info < (3, 12) and len(seen) == 3 else 0


def watch_words(watched: Sequence[tuple[dict[Any, Any], Mapping[Any, Any]]], keep: list[Any]) -> Any:
    """Return a table of watches: dicts, and what each must hold by key; `MISSING` for nothing."""
    table: list[int] = []
    for holder, items in watched:
        pairs = words([n for key, value in items.items() for n in (id(key), 0 if value is MISSING else id(value))])
        keep += [holder, items, pairs]
        table += [id(holder), 0, len(items), address(pairs), _version_offset()]
    assert len(table) == len(watched) * len(Watch)
    keep.append(found := words(table))
    return found


MISSING: Any = object()
"""Stands for a key that a dict must not have."""


class StateWords(ctypes.c_int64 * len(State)):  # pyright: ignore[reportUntypedBaseClass]
    """A kernel's state; the dispatcher's `self`, which keeps everything it points to alive."""


@dataclass
class Target:
    """One entry to be found: its key, which words of it count, the program, and what must hold."""

    key: Sequence[int]
    mask: Sequence[int]
    function: int
    number: int
    watched: Sequence[tuple[dict[Any, Any], Mapping[Any, Any]]] = ()
    fields: Sequence[tuple[int, int]] = ()
    scalars: Sequence[tuple[int, int]] = ()
    same: Sequence[tuple[int, int]] = ()
    probes: Sequence[tuple[int, Any, Any, Any]] = ()
    keep: list[Any] = field(default_factory=list[Any])

    @property
    def masked(self) -> list[int]:
        """The key with the words that do not count left out."""
        return [word & mask for word, mask in zip(self.key, self.mask, strict=True)]

    def table(self) -> Any:
        """Return the entry's words; everything they point to stays in `keep`."""
        key = words(self.masked)
        watches = watch_words(self.watched, self.keep)
        pairs = [words([n for pair in found for n in pair]) for found in (self.fields, self.scalars, self.same)]
        probes = words([n for kind, *rest in self.probes for n in (kind, *_probe_words(rest))])
        made = words([0] * len(Entry))
        filled = {
            Entry.HASH: digest(self.masked), Entry.KEY: address(key), Entry.FUNCTION: self.function,
            Entry.NUMBER: self.number, Entry.WATCHES: len(self.watched), Entry.WATCH_TABLE: address(watches),
            Entry.FIELDS: len(self.fields), Entry.FIELD_TABLE: address(pairs[0]),
            Entry.SCALARS: len(self.scalars), Entry.SCALAR_TABLE: address(pairs[1]),
            Entry.SAME: len(self.same), Entry.SAME_TABLE: address(pairs[2]),
            Entry.PROBES: len(self.probes), Entry.PROBE_TABLE: address(probes),
        }  # fmt: skip
        for place, value in filled.items():
            made[place] = _signed(value)
        self.keep += [key, *pairs, probes, self.probes, made]
        return made


def _probe_words(probe: Sequence[Any]) -> tuple[int, int, int]:
    owner, key, expected = probe
    return id(owner), id(key), expected if isinstance(expected, int) and key is None else id(expected)


@dataclass
class Lookup:
    """The entries of one kernel in groups, each a hash table."""

    groups: dict[tuple[int, ...], dict[tuple[int, ...], Any]] = field(
        default_factory=dict[tuple[int, ...], "dict[tuple[int, ...], Any]"]
    )
    tables: list[Any] = field(default_factory=list[Any])

    def add(self, target: Target, state: Any) -> None:
        """Put an entry where the dispatcher finds it."""
        entries = self.groups.setdefault(tuple(target.mask), {})
        entries[tuple(target.masked)] = target.table()  # of several programs for one key, the latest is found
        self.tables = []
        rows: list[int] = []
        for mask, entries in self.groups.items():
            size = 1 << max(2, (2 * len(entries)).bit_length())
            slots = words([0] * size)
            for entry in entries.values():
                _insert(slots, entry, size - 1)
            held = words(mask)
            self.tables += [slots, held]
            rows += [len(mask), address(held), address(slots), size - 1]
        assert len(rows) == len(self.groups) * len(Group)
        self.tables.append(table := words(rows))
        state[State.GROUP_TABLE] = address(table)
        state[State.GROUPS] = len(self.groups)


def _insert(slots: Any, entry: Any, last: int) -> None:
    place = entry[Entry.HASH] & last
    while slots[place]:
        place = (place + 1) & last
    slots[place] = address(entry)


def environment() -> dict[Any, Any]:
    """Return the dict behind `os.environ`, whose values are as the system has them."""
    return os.environ._data  # pyright: ignore[reportPrivateUsage, reportUnknownMemberType, reportAttributeAccessIssue, reportUnknownVariableType]
