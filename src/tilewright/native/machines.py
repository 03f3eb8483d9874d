"""Machines: the processors and systems that native code runs on, and what the code of each does its own way.

Everything is emitted as ELF objects, whatever the system. Linux maps them by our own loader and takes warm calls by the
dispatcher's machine code; macOS and Windows leave loading to LLVM, and calls to Python. Elsewhere there is no native
code, and whoever asks for it gets the interpreter.
"""

from __future__ import annotations

import platform
import sys
from enum import Enum
from functools import cache

from tilewright.records import record


class System(Enum):
    """The operating systems that native code runs on, as Python names them."""

    LINUX = "linux"
    MACOS = "darwin"
    WINDOWS = "win32"


class Processor(Enum):
    """The processors that native code is made for: LLVM's name for each, and what else it is called."""

    X86_64 = ("x86_64", "amd64")
    AARCH64 = ("aarch64", "arm64")


def processor_called(name: str) -> Processor | None:
    """Return a processor by any of its names, None for one that no native code is made for."""
    return next((each for each in Processor if name.lower() in each.value), None)


@record
class Machine:
    """A processor under an operating system."""

    system: System
    processor: Processor

    @property
    def is_linux(self) -> bool:
        """Whether our own loader and the dispatcher's machine code run here."""
        return self.system is System.LINUX

    @property
    def has_pool(self) -> bool:
        """Whether workers of our own can run chunks side by side."""
        return self.system is not System.WINDOWS

    @property
    def waiting(self) -> str:
        """How code on this machine waits, as LLVM IR.

        `@relax()` lets the processor do something else for a moment; `@sleep.while(word, value)` sleeps until somebody
        calls `@wake.all(word)`, unless the word has another value.
        """
        sleeping = _SLEEPING_ON_MACOS if self.system is System.MACOS else _SLEEPING.format(_FUTEX[self.processor])
        return _RELAXING[self.processor] + sleeping


_RELAXING = {
    Processor.X86_64: """
declare void @llvm.x86.sse2.pause()
define internal void @relax() nounwind {
  call void @llvm.x86.sse2.pause()
  ret void
}
""",
    # a yield is nothing to most of these processors; waiting for the pipeline is a pause
    Processor.AARCH64: """
declare void @llvm.aarch64.isb(i32)
define internal void @relax() nounwind {
  call void @llvm.aarch64.isb(i32 15)
  ret void
}
""",
}

_FUTEX = {Processor.X86_64: 202, Processor.AARCH64: 98}
"""Linux's number of the system call."""

_SLEEPING = """
declare i64 @syscall(i64, ...)
define internal void @sleep.while(ptr %word, i32 %value) nounwind {{  ; FUTEX_WAIT | FUTEX_PRIVATE
  %slept = call i64 (i64, ...) @syscall(i64 {0}, ptr %word, i32 128, i32 %value, ptr null, ptr null, i32 0)
  ret void
}}
define internal void @wake.all(ptr %word) nounwind {{  ; FUTEX_WAKE | FUTEX_PRIVATE
  %woken = call i64 (i64, ...) @syscall(i64 {0}, ptr %word, i32 129, i32 2147483647, ptr null, ptr null, i32 0)
  ret void
}}
"""

_SLEEPING_ON_MACOS = """
declare i32 @__ulock_wait(i32, ptr, i64, i32)
declare i32 @__ulock_wake(i32, ptr, i64)
define internal void @sleep.while(ptr %word, i32 %value) nounwind {  ; UL_COMPARE_AND_WAIT | ULF_NO_ERRNO
  %wide = zext i32 %value to i64
  %slept = call i32 @__ulock_wait(i32 16777217, ptr %word, i64 %wide, i32 0)
  ret void
}
define internal void @wake.all(ptr %word) nounwind {  ; the same with ULF_WAKE_ALL
  %woken = call i32 @__ulock_wake(i32 16777473, ptr %word, i64 0)
  ret void
}
"""


def here() -> Machine | None:
    """Return the machine this process runs on, None where no native code runs on it."""
    return _machine(platform.machine(), sys.platform)


@cache
def _machine(called: str, system_called: str) -> Machine | None:
    processor = processor_called(called)
    system = next((each for each in System if system_called == each.value), None)
    wide = sys.maxsize > 1 << 32 and sys.byteorder == "little"
    return Machine(system, processor) if system and processor and wide else None


def objection() -> str:
    """Return what this machine is, where native code does not run on it."""
    if here() is not None:
        return ""
    return f"native code runs on Linux, macOS and Windows, on x86-64 and aarch64, not on {_called()}"


def _called() -> str:
    return f"{sys.platform} and {platform.machine() or 'an unknown processor'}"
