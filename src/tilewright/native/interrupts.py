"""Interrupts: what becomes of a signal while a kernel runs.

Python only notes a signal; its handler runs once the main thread is back in Python, and in a kernel it is not. So
loops call `look(context)` now and then. Every 40 ms that goes to Python: the main thread runs the handlers of what has
come, and where one of them raises, as the usual one for Ctrl-C does, the program's error word ends the program, and
what was raised waits here for the caller. A kernel that kept other Python threads out lets them have their turn first.
Workers have no part in this: they see the error word.

A signal costs nothing until it comes but this: a kernel of more than 40 ms that runs beside busy Python threads waits
for the interpreter's lock as often.
"""

from __future__ import annotations

import ctypes
import sys
import threading
from typing import NoReturn

from tilewright.forks import Lock, after_fork
from tilewright.native.context import INTERRUPTED, Context
from tilewright.native.loader import Loaded, load
from tilewright.native.machines import System
from tilewright.native.threads import Emit, emitted

PERIOD = 40
"""Milliseconds between two looks: less than half of the 100 that an interrupt may take."""

_PYTHON = (
    "PyErr_CheckSignals", "PyErr_Fetch", "PyEval_RestoreThread", "PyEval_SaveThread", "PyGILState_Check",
    "PyGILState_GetThisThreadState", "Py_DecRef",
)  # fmt: skip

LOOK = f"""
@main = dso_local global i64 0
@raised = dso_local global [3 x ptr] zeroinitializer, align 8
declare i32 @PyErr_CheckSignals()
declare void @PyErr_Fetch(ptr, ptr, ptr)
declare void @PyEval_RestoreThread(ptr)
declare ptr @PyEval_SaveThread()
declare i32 @PyGILState_Check()
declare ptr @PyGILState_GetThisThreadState()
declare void @Py_DecRef(ptr)
declare i32 @clock_gettime(i32, ptr)
declare i64 @pthread_self()

define void @look(ptr %context) nounwind {{
entry:
  %time = alloca [2 x i64], align 8
  %self = call ptr @PyGILState_GetThisThreadState()
  %worker = icmp eq ptr %self, null
  br i1 %worker, label %done, label %clock
clock:  ; CLOCK_MONOTONIC_COARSE, in milliseconds
  %told = call i32 @clock_gettime(i32 6, ptr %time)
  %seconds = load i64, ptr %time
  %nanoseconds.at = getelementptr i64, ptr %time, i64 1
  %nanoseconds = load i64, ptr %nanoseconds.at
  %whole = mul i64 %seconds, 1000
  %rest = udiv i64 %nanoseconds, 1000000
  %now = add i64 %whole, %rest
  %since.at = getelementptr i64, ptr %context, i64 {Context.SINCE}
  %since = load i64, ptr %since.at
  %first = icmp eq i64 %since, 0
  br i1 %first, label %begin, label %wait
begin:
  store i64 %now, ptr %since.at
  ret void
wait:
  %elapsed = sub i64 %now, %since
  %early = icmp slt i64 %elapsed, {PERIOD}
  br i1 %early, label %done, label %due
due:
  store i64 %now, ptr %since.at
  %check = call i32 @PyGILState_Check()
  %held = icmp ne i32 %check, 0
  br i1 %held, label %yield, label %ask
yield:
  %saved = call ptr @PyEval_SaveThread()
  br label %take
ask:
  %id = call i64 @pthread_self()
  %main = load i64, ptr @main
  %is.main = icmp eq i64 %id, %main
  br i1 %is.main, label %take, label %done
take:
  call void @PyEval_RestoreThread(ptr %self)
  %answer = call i32 @PyErr_CheckSignals()
  %fine = icmp eq i32 %answer, 0
  br i1 %fine, label %leave, label %stop
stop:  ; what nobody has taken makes room
  %value.at = getelementptr ptr, ptr @raised, i64 1
  %traceback.at = getelementptr ptr, ptr @raised, i64 2
  %old.type = load ptr, ptr @raised
  %old.value = load ptr, ptr %value.at
  %old.traceback = load ptr, ptr %traceback.at
  call void @PyErr_Fetch(ptr @raised, ptr %value.at, ptr %traceback.at)
  %error.at = getelementptr i64, ptr %context, i64 {Context.ERROR}
  store atomic i64 {INTERRUPTED}, ptr %error.at monotonic, align 8
  call void @Py_DecRef(ptr %old.type)
  call void @Py_DecRef(ptr %old.value)
  call void @Py_DecRef(ptr %old.traceback)
  br label %leave
leave:
  br i1 %held, label %done, label %release
release:
  %again = call ptr @PyEval_SaveThread()
  ret void
done:
  ret void
}}
"""


def look_address(emit: Emit = emitted) -> int:
    """Return the address of a C function `void (context)`, good for the life of the process; 0 where there is none."""
    return 0 if sys.platform == System.WINDOWS.value else _code(emit).address("look")


def raise_interrupt() -> NoReturn:
    """Raise what the handler of a signal raised while a program ran."""
    raised = (ctypes.c_void_p * 3).from_address(_code(emitted).address("raised"))
    error = [pointer or 0 for pointer in raised]
    raised[:] = [None] * 3
    restore = ctypes.pythonapi.PyErr_Restore
    restore.argtypes, restore.restype = [ctypes.c_void_p] * 3, None
    restore(*error)  # ctypes raises what is set when it returns
    raise KeyboardInterrupt


def _code(emit: Emit) -> Loaded:
    with _lock:
        if not _loaded:
            symbols = {name: ctypes.cast(ctypes.pythonapi[name], ctypes.c_void_p).value or 0 for name in _PYTHON}
            _loaded.append(load(emit(LOOK), symbols).pin())
            _name_main_thread()
        return _loaded[0]


def _name_main_thread() -> None:
    """Tell the code which thread runs the handlers of signals."""
    for loaded in _loaded:
        ctypes.c_uint64.from_address(loaded.address("main")).value = threading.main_thread().ident or 0


_lock = Lock()
_loaded: list[Loaded] = []
after_fork(_name_main_thread)  # a forked child's only thread is its main one
