"""Loading: relocations, outside symbols, memory, and objects that are broken."""

from __future__ import annotations

import ctypes
import gc
import random
import subprocess
import sys
from ctypes import c_double, c_int64, c_void_p
from functools import cache
from pathlib import Path

import pytest

from tilewright.native.assemble import assemble
from tilewright.native.loader import Loaded, load
from tilewright.native.machines import here
from tilewright.native.target import PRESETS, host

pytestmark = pytest.mark.skipif(here() is None, reason="needs native code")

SECTIONS = """
@table = internal constant [4 x i64] [i64 10, i64 20, i64 30, i64 40], align 64
@counter = internal global i64 5
@scratch = internal global [100 x i64] zeroinitializer, align 64
@handlers = internal constant [2 x ptr] [ptr @one, ptr @two]

define i64 @one() { ret i64 1 }
define i64 @two() { ret i64 2 }
define i64 @lookup(i64 %i) {
  %at = getelementptr i64, ptr @table, i64 %i
  %v = load i64, ptr %at
  ret i64 %v
}
define i64 @count() {
  %old = load i64, ptr @counter
  %new = add i64 %old, 1
  store i64 %new, ptr @counter
  ret i64 %new
}
define i64 @keep(i64 %i, i64 %v) {
  %at = getelementptr i64, ptr @scratch, i64 %i
  %old = load i64, ptr %at
  store i64 %v, ptr %at
  ret i64 %old
}
define i64 @dispatch(i64 %i) {
  %at = getelementptr ptr, ptr @handlers, i64 %i
  %fn = load ptr, ptr %at
  %v = call i64 %fn()
  ret i64 %v
}
define double @half(double %x) {
  %y = fmul double %x, 0x3FE0000000000000
  ret double %y
}
"""
OUTSIDE = """
@level = external global i64
@shared = global i64 7
declare double @exp(double)
declare i64 @callback(i64)
declare ptr @memset(ptr, i32, i64)
define double @grow(double %x) {
  %y = call double @exp(double %x)
  ret double %y
}
define i64 @call(i64 %x) {
  %y = call i64 @callback(i64 %x)
  %z = load i64, ptr @level
  %w = load i64, ptr @shared
  %s = add i64 %y, %z
  %t = add i64 %s, %w
  ret i64 %t
}
define ptr @which() { ret ptr @callback }
define void @clear(ptr %x) {
  %y = call ptr @memset(ptr %x, i32 0, i64 64)
  ret void
}
"""


@cache
def made(text: str) -> bytes:
    return assemble(text, host()).object


@pytest.fixture
def sections() -> Loaded:
    return load(made(SECTIONS))


@pytest.mark.parametrize(("name", "args", "result"), [("lookup", (2,), 30), ("dispatch", (1,), 2), ("keep", (9, 1), 0)])
def test_code_reaches_its_data(sections: Loaded, name: str, args: tuple[int, ...], result: int) -> None:
    assert sections.function(name, c_int64, *[c_int64] * len(args))(*args) == result


def test_constants_of_vectors_and_floats_are_reached(sections: Loaded) -> None:
    assert sections.function("half", c_double, c_double)(3.0) == 1.5


def test_data_is_written_and_each_load_has_its_own(sections: Loaded) -> None:
    count = sections.function("count", c_int64)
    assert (count(), count(), load(made(SECTIONS)).function("count", c_int64)()) == (6, 7, 6)


def test_sections_are_aligned(sections: Loaded) -> None:
    assert (sections.address("table") % 64, sections.address("scratch") % 64) == (0, 0)


def test_code_is_not_writable_and_data_is_not_executable(sections: Loaded) -> None:
    assert (permissions(sections.address("count")), permissions(sections.address("scratch"))) == ("r-xp", "rw-p")


def test_outside_symbols_come_from_the_caller_and_then_from_the_c_library() -> None:
    triple = ctypes.CFUNCTYPE(c_int64, c_int64)((3).__mul__)
    level, callback = c_int64(100), ctypes.cast(triple, c_void_p).value or 0
    loaded = load(made(OUTSIDE), {"callback": callback, "level": ctypes.addressof(level)})
    assert loaded.function("call", c_int64, c_int64)(5) == 15 + 100 + 7
    assert loaded.function("which", c_void_p)() == callback
    assert loaded.function("grow", c_double, c_double)(1.0) == pytest.approx(2.718281828459045)
    buffer = ctypes.create_string_buffer(b"x" * 80, 80)
    loaded.function("clear", None, c_void_p)(ctypes.addressof(buffer))
    assert buffer.raw == bytes(64) + b"x" * 16


def test_a_name_nobody_defines_is_named() -> None:
    with pytest.raises(ValueError, match="nobody defines `(callback|level)`"):
        load(made(OUTSIDE))


def test_asking_for_a_symbol_that_is_not_there_fails(sections: Loaded) -> None:
    with pytest.raises(KeyError):
        sections.address("nothing")


def test_code_for_another_machine_is_refused() -> None:
    other = PRESETS["aarch64" if host().machine == "x86_64" else "x86-64"]
    with pytest.raises(ValueError, match="cannot load an object for (aarch64 on x86-64|x86-64 on aarch64)"):
        load(assemble(SECTIONS, other).object)


def test_thread_local_data_is_refused() -> None:
    text = "@v = thread_local global i64 1\ndefine i64 @f() {\n %a = load i64, ptr @v\n ret i64 %a\n}"
    with pytest.raises(ValueError, match="relocation type|nobody defines"):
        load(made(text))


def test_memory_is_unmapped_with_the_last_reference() -> None:
    loaded = load(made(SECTIONS))
    address, function = loaded.address("count"), loaded.function("count", c_int64)
    del loaded
    gc.collect()
    assert function() == 6
    del function
    gc.collect()
    assert permissions(address) != "r-xp"


def test_a_truncated_object_is_refused_at_every_length() -> None:
    code = made(SECTIONS)
    for length in range(len(code)):
        with pytest.raises(ValueError, match="broken object|cannot load"):
            load(code[:length])


def test_a_damaged_object_loads_or_is_refused() -> None:
    code, rng, refused = made(SECTIONS), random.Random(0), 0
    for _ in range(2000):
        damaged = bytearray(code)
        damaged[rng.randrange(len(code))] = rng.randrange(256)
        try:
            load(bytes(damaged))
        except ValueError:
            refused += 1
    assert refused


def test_loading_does_not_load_llvm(tmp_path: Path) -> None:
    path = tmp_path / "sections.o"
    path.write_bytes(made(SECTIONS))
    code = f"import sys; from tilewright.native.loader import load; load(open({str(path)!r}, 'rb').read()); "
    code += "print('llvmlite' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-W", "ignore", "-c", code], text=True).strip() == "False"


def permissions(address: int) -> str:
    for line in Path("/proc/self/maps").read_text().splitlines():
        bounds, allowed = line.split()[:2]
        start, end = (int(bound, 16) for bound in bounds.split("-"))
        if start <= address < end:
            return allowed
    return ""
