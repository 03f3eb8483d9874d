"""Assembling: objects for every target, and errors that show the line."""

from __future__ import annotations

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import repeat

import pytest

from tilewright.errors import InternalError
from tilewright.native import assemble as assembling
from tilewright.native.assemble import assemble, assembly, llvm_version, make_ready
from tilewright.native.target import PRESETS, Target, host

SQUARE = """
define void @square(ptr %x) nounwind {
  %a = load <16 x float>, ptr %x, align 4
  %b = fmul <16 x float> %a, %a
  store <16 x float> %b, ptr %x, align 4
  ret void
}
"""
MISTYPED = "define i32 @f() {\n  %a = fadd float 1.0, 2.0\n  ret i32 %a\n}"
UNDOMINATED = """
define float @f(i1 %c) {
  br i1 %c, label %x, label %y
x:
  %a = fadd float 1.0, 2.0
  br label %y
y:
  ret float %a
}
"""


@pytest.mark.parametrize(("name", "machine"), [("x86-64", 62), ("x86-64-v3", 62), ("x86-64-v4", 62), ("aarch64", 183)])
def test_an_object_is_made_for_its_machine(name: str, machine: int) -> None:
    made = assemble(SQUARE, PRESETS[name]).object
    assert (made[:4], int.from_bytes(made[18:20], "little")) == (b"\x7fELF", machine)


@pytest.mark.parametrize(("name", "register"), [("x86-64", "%xmm"), ("x86-64-v3", "%ymm"), ("x86-64-v4", "%zmm")])
def test_the_same_vectors_use_the_registers_of_the_target(name: str, register: str) -> None:
    assert register in assembly(SQUARE, PRESETS[name])


def test_assembly_can_be_asked_of_what_was_assembled() -> None:
    assert "square:" in assemble(SQUARE, host()).assembly


def test_the_same_text_gives_the_same_bytes() -> None:
    assert assemble(SQUARE, host()).object == assemble(SQUARE, host()).object


def test_what_does_not_parse_shows_its_line() -> None:
    with pytest.raises(InternalError) as caught:
        assemble(MISTYPED, host())
    assert str(caught.value).splitlines()[:4] == [
        "LLVM refuses line 3 of the generated code: '%a' defined with type 'float' but expected 'i32'",
        " 1 | define i32 @f() {",
        " 2 |   %a = fadd float 1.0, 2.0",
        " 3 |   ret i32 %a",
    ]


def test_what_does_not_verify_shows_its_instructions() -> None:
    with pytest.raises(InternalError, match="(?s)does not dominate all uses.*%a = fadd.*ret float %a"):
        assemble(UNDOMINATED, host())


@pytest.mark.parametrize("text", ["garbage", "define void @f() {", "define void @f() {\n", "}"])
def test_any_other_text_is_refused(text: str) -> None:
    with pytest.raises(InternalError, match="LLVM refuses"):
        assemble(text, host())


def test_threads_may_assemble_at_once() -> None:
    texts = [SQUARE.replace("@square", f"@square{i}") for i in range(16)]
    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(assemble, texts, repeat(host())))
    assert all(f"square{i}\0".encode() in code.object for i, code in enumerate(made))


def test_the_version_of_llvm_is_known() -> None:
    assert int(llvm_version().split(".")[0]) >= 20


def test_other_processors_are_made_ready_when_one_is_asked_for() -> None:
    script = "from tilewright.native.assemble import *; from tilewright.native.target import *\n"
    script += "for target in (host(), *PRESETS.values()): assemble('define void @f() { ret void }', target)"
    subprocess.run([sys.executable, "-c", script], check=True)


@pytest.fixture
def modules(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that LLVM reads, which has read none before."""
    read, found = assembling._module, list[str]()  # pyright: ignore[reportPrivateUsage]
    assembling._machine.cache_clear()  # pyright: ignore[reportPrivateUsage]

    def noted(text: str, target: Target, level: int) -> object:
        found.append(text)
        return read(text, target, level)

    monkeypatch.setattr(assembling, "_module", noted)
    return found


def test_llvm_is_made_ready_once(modules: list[str]) -> None:
    make_ready(host())
    make_ready(host())
    assert modules == [assembling.FIRST]


def test_who_has_made_something_finds_llvm_ready(modules: list[str]) -> None:
    assemble(SQUARE, host())
    make_ready(host())
    assert modules == [SQUARE]


def test_llvm_at_work_is_not_waited_for(modules: list[str]) -> None:
    begun, done = threading.Event(), threading.Event()

    def work() -> None:
        with assembling._lock:  # pyright: ignore[reportPrivateUsage]
            begun.set()
            done.wait()

    thread = threading.Thread(target=work)
    thread.start()
    begun.wait()
    make_ready(host())
    done.set()
    thread.join()
    assert modules == []
