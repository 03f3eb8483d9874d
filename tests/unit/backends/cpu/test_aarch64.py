"""Code for aarch64: relocated instructions lead where they should, and a kernel computes under emulation."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from ops.kernels import Array
from unit.backends.cpu.foreign import made, support

from tilewright.call.argument import Argument
from tilewright.native.assemble import assemble
from tilewright.native.context import Context
from tilewright.native.elf import Relocation, read
from tilewright.native.loader import Image
from tilewright.native.machines import Machine, Processor, System
from tilewright.native.regions import POOL, SERIAL
from tilewright.native.relocations import RULES, Refers
from tilewright.native.target import baseline

ARM = Machine(System.LINUX, Processor.AARCH64)


def reached(kind: str, words: Mapping[int, int], place: int, base: int) -> int:
    """Return the address that an instruction leads to, with the one before it where two make an address."""
    word = words[place]
    if kind == "CALL26" or kind == "JUMP26":
        return place + signed(word & 0x3FFFFFF, 26) * 4
    if kind.endswith(("PG_HI21", "GOT_PAGE")):
        return (place & ~0xFFF) + (signed((word >> 5 & 0x7FFFF) << 2 | word >> 29 & 3, 21) << 12)
    size = {"ADD": 0, "LDST8": 0, "LDST16": 1, "LDST32": 2, "LDST64": 3, "LD64": 3, "LDST128": 4}[kind.split("_")[0]]
    return base | (word >> 10 & 0xFFF) << size


def signed(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> bits - 1 else value


def test_relocated_instructions_of_aarch64_lead_to_their_symbols() -> None:
    text = """
@table = internal constant [4 x i64] [i64 1, i64 2, i64 3, i64 4], align 64
@counter = global i64 5
@bytes = internal global [3 x i8] zeroinitializer
@far = external global i64
declare i64 @outside(i64)
define i64 @use(i64 %i) nounwind {
  %at = getelementptr i64, ptr @table, i64 %i
  %a = load i64, ptr %at
  %b = load i64, ptr @counter
  %c = load i64, ptr @far
  %wide = load <2 x i64>, ptr @table
  %d = extractelement <2 x i64> %wide, i32 1
  store i8 1, ptr @bytes
  %e = call i64 @outside(i64 %a)
  %f = call i64 @other(i64 %b)
  %s = add i64 %c, %d
  %t = add i64 %e, %f
  %u = add i64 %s, %t
  ret i64 %u
}
define i64 @other(i64 %i) noinline nounwind {
  ret i64 %i
}
"""
    found, rules = read(assemble(text, baseline(ARM)).object), RULES[Processor.AARCH64]
    outside = {"outside": 0x7777_0000_1230, "far": 0x6666_0000_4568}
    image = Image(found, rules, outside)
    loaded = image.load()
    memory = memoryview(loaded.memory)  # pyright: ignore[reportArgumentType] - a mapping, of our own loader
    seen: set[str] = set()
    for relocation in found.relocations:
        kind, place = rules.kinds[relocation.kind], image.base + image.places[relocation.section] + relocation.offset
        wanted = target_of(image, relocation, loaded.addresses)
        word = int.from_bytes(memory[place - image.base : place - image.base + 4], "little")
        assert reached(kind.name, {place: word}, place, wanted & ~0xFFF) in (wanted, wanted & ~0xFFF)
        seen.add(kind.name)
    assert {"ADR_PREL_PG_HI21", "ADD_ABS_LO12_NC", "CALL26", "ADR_GOT_PAGE", "LD64_GOT_LO12_NC"} <= seen
    stub = image.stubs["outside"]
    assert bytes(memory[stub + 8 : stub + 16]) == outside["outside"].to_bytes(8, "little")
    (slot,) = (place for symbol, place in image.slots.items() if symbol.name == "far")
    assert bytes(memory[slot : slot + 8]) == outside["far"].to_bytes(8, "little")


def target_of(image: Image, relocation: Relocation, addresses: Mapping[str, int]) -> int:
    """Return the address that a relocated instruction has to lead to."""
    symbol = relocation.symbol
    if image.rules.kinds[relocation.kind].refers is Refers.SLOT:
        return image.base + image.slots[symbol]
    if symbol.section == 0:
        return image.base + image.stubs[symbol.name]
    if symbol.name:
        return addresses[symbol.name] + relocation.addend
    return image.base + image.places[symbol.section] + symbol.value + relocation.addend


MAIN = """
#include <stdint.h>
#include <stdio.h>
void %(entry)s(int64_t *, int64_t *);
extern char %(parallel)s[];
extern int64_t threads;
%(arrays)s
int main(void) {
  int64_t words[] = {%(words)s}, context[%(context)d] = {(int64_t)%(parallel)s};
  %(start)s
  %(entry)s(words, context);
  if (context[%(error)d]) return 1;
  for (int i = 0; i < %(count)d; i++) printf("%%a\\n", out[i]);
}
"""


def initial(name: str, kind: str, array: Array) -> str:
    """Return C that defines an array with what it holds."""
    held = np.frombuffer(array.tobytes(), {2: np.uint16, 4: np.uint32}[array.itemsize])
    values = ", ".join(map(str, held.tolist()))
    bits = {2: "uint16_t", 4: "uint32_t"}[array.itemsize]
    union = f"union {{ {bits} bits[{array.size}]; {kind} values[{array.size}]; }}"
    return f"static {union} {name}_ = {{{{{values}}}}};\n#define {name} {name}_.values"


def run(command: Sequence[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("parallel", ["serial", "parallel"])
def test_a_kernel_for_aarch64_computes_under_emulation(parallel: str, tmp_path: Path) -> None:
    emulator = shutil.which("qemu-aarch64-static") or shutil.which("qemu-aarch64")
    compiler = shutil.which("aarch64-linux-gnu-gcc")
    if not emulator or not compiler:
        pytest.skip("needs qemu-user and gcc for aarch64")
    rng = np.random.default_rng(0)
    x, h = rng.standard_normal((20, 32), np.float32), rng.standard_normal((20, 32)).astype(np.float16)
    out = np.zeros_like(x)
    arrays = {"x": ("float", x), "h": ("uint16_t", h), "out": ("float", out)}
    words = [", ".join([f"(int64_t){n}", *map(str, Argument.of_array(a).words[1:])]) for n, (_, a) in arrays.items()]
    words.insert(2, "7")
    entry, code = made(baseline(ARM))
    facts = {"entry": entry, "parallel": parallel, "context": len(Context), "error": Context.ERROR, "count": x.size}
    facts["start"] = "threads = 3;" if parallel == "parallel" else ""
    facts["arrays"] = "\n".join(initial(name, *each) for name, each in arrays.items())
    (tmp_path / "main.c").write_text(MAIN % {**facts, "words": ", ".join(words)})
    (tmp_path / "kernel.o").write_bytes(code)
    (tmp_path / "support.o").write_bytes(support(ARM, SERIAL + POOL))
    objects = [str(tmp_path / name) for name in ("main.c", "kernel.o", "support.o")]
    run([compiler, "-static", "-o", str(tmp_path / "main"), *objects, "-lm", "-lpthread"])
    printed = run([emulator, str(tmp_path / "main")]).split()
    found = np.reshape(np.array([float.fromhex(each) for each in printed], np.float32), x.shape)
    shares = np.exp(x - x.max(axis=1, keepdims=True))
    wanted = shares / shares.sum(axis=1, keepdims=True) * h.astype(np.float32) + 7
    np.testing.assert_allclose(found, wanted, rtol=1e-5)
