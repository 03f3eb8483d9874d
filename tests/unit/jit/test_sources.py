"""Sources: where a kernel's text comes from, and what happens when it cannot be had."""

# pyright: basic, reportInvalidTypeForm=false, reportArgumentType=false
# pyright: reportAttributeAccessIssue=false, reportCallIssue=false
from __future__ import annotations

import importlib
import linecache
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from unit.jit.kernels import misspelt, numbers, tripled

import tilewright.language as pl
from tilewright.errors import SourceUnavailableError, UndefinedNameError

X = numbers(4, 8)

TEXT = """
@pl.jit
def kernel(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        out = pl.store(pl.load(x, [0, 0], [4, 8]) * 2.0, [0, 0], out)
    return out
"""
MODULE = "import tilewright.language as pl\n" + TEXT


def cell(number: int, text: str, names: dict[str, Any]) -> None:
    """Run a notebook cell, as IPython does."""
    filename = f"<ipython-input-{number}-tilewright>"
    linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
    exec(compile(text, filename, "exec"), names)


def test_a_kernel_of_a_notebook_cell_is_read_from_the_cell() -> None:
    names: dict[str, Any] = {"pl": pl}
    cell(1, TEXT, names)
    assert torch.equal(names["kernel"](X), 2 * X)
    first = names["kernel"]
    cell(2, TEXT.replace("2.0", "5.0"), names)
    assert torch.equal(names["kernel"](X), 5 * X)
    assert torch.equal(first(X), 2 * X)


def test_cells_call_kernels_of_cells() -> None:
    names: dict[str, Any] = {"pl": pl}
    cell(3, TEXT.replace("@pl.jit", "@pl.jit.opaque").replace("def kernel", "def helper"), names)
    cell(4, "@pl.jit\ndef kernel(x: pl.Tensor, out: pl.Out[pl.Tensor]):\n    return helper(x, out)\n", names)
    assert torch.equal(names["kernel"](X), 2 * X)


def test_a_mistake_in_another_file_is_shown_there() -> None:
    @pl.jit
    def kernel(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        return misspelt(x, out)

    with pytest.raises(UndefinedNameError) as caught:
        kernel(X)
    assert caught.value.place.filename == sys.modules[misspelt.__module__].__file__
    assert "in kernel `misspelt`: Undefined variable 'FACTR'" in str(caught.value)
    assert "help: did you mean `FACTOR`?" in str(caught.value)


def test_a_function_without_text_is_an_os_error_that_says_why_and_what_to_do() -> None:
    names: dict[str, Any] = {"pl": pl}
    exec(TEXT, names)
    for _ in range(2):
        with pytest.raises(OSError) as caught:
            names["kernel"](X)
        assert isinstance(caught.value, SourceUnavailableError)
        assert "the source of kernel `kernel` is not available: there is no text for <string>" in str(caught.value)
        assert "help: define it in a file or a notebook cell, or hand its text to pl.parse" in str(caught.value)


def test_a_kernel_of_a_command_is_read_from_the_command() -> None:
    command = f"""import torch
{MODULE}
print(kernel(torch.ones(4, 8)).sum().item())
names = {{"pl": pl, "__name__": "__main__"}}
exec({TEXT!r}, names)
try:
    names["kernel"](torch.ones(4, 8))
except OSError as error:
    print(error)
"""
    ran = subprocess.run([sys.executable, "-c", command, "some", "words"], capture_output=True, text=True, check=True)
    assert ran.stdout.startswith("64.0\n") and "there is no text for <string>" in ran.stdout


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """A module with one kernel, in a file that can be edited."""
    path = tmp_path / "edited_kernels.py"
    path.write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield importlib.import_module("edited_kernels")
    del sys.modules["edited_kernels"]


def edit(module: ModuleType, text: str, seconds: int = 10) -> None:
    """Write a module's file again, later."""
    assert module.__file__ is not None
    Path(module.__file__).write_text(text)
    later = os.stat(module.__file__).st_mtime + seconds
    os.utime(module.__file__, (later, later))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (MODULE.replace("2.0", "9.0"), "edited_kernels.py has changed since Python read it"),
        (MODULE.replace("x:", "y:").replace("(x,", "(y,"), "edited_kernels.py has changed since Python read it"),
        ("# above\n" + MODULE, "edited_kernels.py does not define it, as Python says it did"),
    ],
    ids=["another number", "another name", "another place"],
)
def test_a_file_edited_after_import_is_refused(module: ModuleType, text: str, reason: str) -> None:
    edit(module, text)
    with pytest.raises(OSError, match=reason) as caught:
        module.kernel(X)
    assert "help: import the module again, or restart Python" in str(caught.value)


def test_a_comment_below_changes_nothing(module: ModuleType) -> None:
    edit(module, MODULE + "# below\n")
    assert torch.equal(module.kernel(X), 2 * X)


def test_a_mistake_below_changes_nothing(module: ModuleType) -> None:
    edit(module, MODULE + "def unfinished(:\n")
    assert torch.equal(module.kernel(X), 2 * X)


def test_text_at_the_margin_inside_a_kernel_is_part_of_it(module: ModuleType) -> None:
    name, *body = MODULE.partition("):\n")
    edit(module, "".join([name, "):\n", '    """Twice the rows.\n\nThe margin is no end.\n    """\n', *body[1:]]))
    importlib.reload(module)
    assert torch.equal(module.kernel(X), 2 * X)


def test_a_module_imported_again_is_read_again(module: ModuleType) -> None:
    old = module.kernel
    assert torch.equal(old(X), 2 * X)
    edit(module, MODULE.replace("2.0", "9.0"))
    importlib.reload(module)
    assert torch.equal(module.kernel(X), 9 * X)
    assert torch.equal(old(X), 2 * X)


def test_a_kernel_keeps_the_text_it_was_first_read_with(module: ModuleType) -> None:
    assert torch.equal(module.kernel(X), 2 * X)
    edit(module, MODULE.replace("2.0", "9.0"))
    assert torch.equal(module.kernel(X.half()), 2 * X.half())


def test_two_kernels_on_neighbouring_lines_are_told_apart() -> None:
    # fmt: off
    @pl.jit
    def first(x: pl.Tensor, out: pl.Out[pl.Tensor]): return tripled(x, out)
    @pl.jit
    def second(x: pl.Tensor, out: pl.Out[pl.Tensor]): return tripled(tripled(x, out), out)
    # fmt: on

    assert torch.equal(first(X), 3 * X)
    assert torch.equal(second(X), 9 * X)
