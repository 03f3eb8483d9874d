"""Names: whatever a text calls its functions and values, they run, and messages say what they are called."""

# pyright: reportUnknownParameterType=false, reportUnknownMemberType=false
from __future__ import annotations

from typing import Any

import pytest
from unit.pto.tiles.running import np, read, run

from tilewright import pto
from tilewright.errors import ExecutionError

FUNCTIONS = ["größe", "核", "a b", "main", "for", "x/y", "llvm.trap", "memcpy", "1", "a.b$c-d", "é" * 200]


def _text(function: str, first: str = "%a", second: str = "%b") -> str:
    return f"""module {{
  func.func private @"{function} helper"(%i: index) -> index {{
    return %i : index
  }}
  func.func @"{function}"({first}: !pto.ptr<f32>, {second}: !pto.ptr<f32>, %n: index) {{
    %i = call @"{function} helper"(%n) : (index) -> index
    %v = pto.load {first}[%i] : !pto.ptr<f32> -> f32
    pto.store %v, {second}[%i] : !pto.ptr<f32>, f32
    return
  }}
}}"""


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_kernel_of_any_name_runs_and_is_named_in_messages(name: str) -> None:
    @pto.jit(name=name, source=_text(name))
    def kernel(a: pto.ptr(pto.f32, "gm"), b: pto.ptr(pto.f32, "gm"), n: pto.index) -> None: ...  # pyright: ignore[reportInvalidTypeForm]

    launch: Any = kernel
    a, b = np.ones(3, np.float32), np.zeros(5, np.float32)
    launch[1, None](a, b, 2)
    assert b.tolist() == [0, 0, 1, 0, 0]
    with pytest.raises(ExecutionError) as caught:
        launch[1, None](a, b, 4)
    assert f"in kernel `{name}`" in str(caught.value)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_of_any_name_is_lowered_for_every_platform(name: str, target: str) -> None:
    a, b = run(read(_text(name)), name, target, 1, [np.ones(3, np.float32), np.zeros(5, np.float32), 2])
    assert (a.tolist(), b.tolist()) == ([1, 1, 1], [0, 0, 1, 0, 0])


@pytest.mark.parametrize(
    ("first", "second"), [("%1", "%arg1"), ("%a$b", "%a.b"), ("%grid", "%block"), ("%for", "%argfor")]
)
def test_arguments_of_alike_names_are_different_ones(target: str, first: str, second: str) -> None:
    text = _text("k", first, second)
    _, b = run(read(text), "k", target, 1, [np.ones(3, np.float32), np.zeros(5, np.float32), 2])
    assert b.tolist() == [0, 0, 1, 0, 0]
