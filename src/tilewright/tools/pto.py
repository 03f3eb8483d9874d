"""The PTO commands: `tilewright pto` checks files of PTO text and runs their functions; `pto_texts` has the others."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from math import isfinite, prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilewright.arrays import np
from tilewright.core.program import Program
from tilewright.dtypes import round_scalar
from tilewright.errors import InternalError
from tilewright.pto.module import Func, Module, Value
from tilewright.pto.types import I1, Ptr, Scalar
from tilewright.tools import pto_texts, screen
from tilewright.tools.arguments import shape_of
from tilewright.tools.command import Command, option, switch
from tilewright.tools.naming import CommandError, check_known, check_least
from tilewright.tools.pto_texts import files, module_in
from tilewright.tools.telling import MISTAKES, facts_of, tell

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tilewright.pto.functions import Functions

    Array = NDArray[Any]

ABOUT = "Check, lay out and compare files of PTO text, or run a function of one."
EPILOG = """examples:
  tilewright pto check kernel.pto                                   parse, verify and lower every function
  tilewright pto run kernel.pto a=random:64x64 b=x.npy out=zeros:64x64 rows=64
  tilewright pto run kernel.pto --entry vec_add --grid 4 --save results a=random:4096 out=zeros:4096
  tilewright pto run kernel.pto --compare a=random:4096 out=zeros:4096   the interpreter must agree
  tilewright pto fmt kernel.pto                                     put its blanks in order
  tilewright pto lint kernel.pto                                    what is legal and can hardly be meant
  tilewright pto diff before.pto after.pto                          what they say differently
  tilewright pto explain trowsum                                    one op: form, meaning, rules, a kernel

Arguments are given by the names the function has for them. A pointer takes a .npy file, or random, zeros, ones,
arange, a number or a range of integers (1..9) with a shape; a scalar takes a number.
"""

MAKERS: Mapping[str, Callable[[Any, tuple[int, ...]], Any]] = {
    "random": lambda rng, shape: rng.uniform(-1, 1, shape),
    "zeros": lambda rng, shape: np.zeros(shape),
    "ones": lambda rng, shape: np.ones(shape),
    "arange": lambda rng, shape: np.reshape(np.arange(prod(shape)), shape),
}
"""What fills a generated buffer."""

CONDITIONS = {"0": False, "1": True, "false": False, "true": True}
"""What a parameter of one bit may be."""

INTEGER_RANGE = 100
"""Random integers lie between its negative, or zero, and this."""


def _check(options: argparse.Namespace) -> None:
    if len(options.files) == 1:
        (path,) = options.files
        found: dict[str, list[str] | Exception] = {str(path): _checked(path, options)}
    else:
        found = {str(path): _checked_beside_others(path, options) for path in options.files}
    if options.json:
        screen.as_json([_facts(path, answer) for path, answer in found.items()])
    else:
        for path, answer in found.items():
            _tell(path, answer)
    if any(isinstance(answer, Exception) for answer in found.values()):
        sys.exit(1)


def _facts(path: str, answer: list[str] | Exception) -> dict[str, object]:
    return {"file": path, "launchable": answer} if isinstance(answer, list) else {**facts_of(answer), "file": path}


def _tell(path: str, answer: list[str] | Exception) -> None:
    if isinstance(answer, Exception):
        tell(answer)
        return
    listed = ", ".join(f"@{name}" for name in answer)
    print(f"{path}: {f'{listed} can be launched' if answer else 'nothing to launch'}")


def _checked_beside_others(path: Path, options: argparse.Namespace) -> list[str] | Exception:
    """Return what can be launched, or what is wrong with a file, which keeps no other from being checked."""
    try:
        return _checked(path, options)
    except InternalError:
        raise
    except MISTAKES as error:
        return error


def _checked(path: Path, options: argparse.Namespace) -> list[str]:
    """Return the names of the functions of a file that can be launched."""
    from tilewright.pto.functions import functions_of

    module = module_in(path, options.target)
    launchable, functions = _launchable(module), functions_of(module, options.target)
    for func in launchable:
        program = lowered(module, func, options.target, functions)
        if options.show and not options.json:
            screen.titled(f"{path} @{func.name}", "as tile IR", program.as_python(concise=True))
    return [func.name for func in launchable]


def _launchable(module: Module) -> list[Func]:
    """Return the functions that run by themselves; work items' and one core's belong to those that start them."""
    from tilewright.pto.entries import callees, is_entry
    from tilewright.pto.machine.cores import kinds_of

    funcs = {func.name: func for func in module.funcs() if func.body is not None}
    called = {name for func in funcs.values() for name in callees(func)}
    parts = {func.name for func in kinds_of(module)} & called
    waiting = [func for func in funcs.values() if is_entry(func)]
    while waiting:
        func = waiting.pop()
        parts.add(func.name)
        waiting += [funcs[name] for name in callees(func) if name in funcs and name not in parts]
    return [func for func in funcs.values() if func.name not in parts and _takes_arguments(func)]


def _takes_arguments(func: Func) -> bool:
    return not func.results and all(isinstance(a.type, (Ptr, Scalar)) for a in func.arguments)


def lowered(module: Module, func: Func, target: str, functions: Functions | None = None) -> Program:
    """Return a function as a program of tiles."""
    from tilewright.pto.lower import lower

    return lower(module, func, target=target, functions=functions)


def _run(options: argparse.Namespace) -> None:
    module = module_in(options.file, options.target)
    func = entry_of(module, options.entry)
    check_least("--grid", options.grid, 1)
    check_least("--seed", options.seed, 0)
    values = given_values(func, options.arguments, options.seed)
    with screen.working(f"running {options.file}"):
        program = lowered(module, func, options.target)
        before = _copied(values)
        launch(program, options.platform, options.grid, values)
    _report(_buffers(func, before), _buffers(func, values), is_json=options.json)
    if options.save is not None:
        _save(options.save, _buffers(func, values))
    if options.compare:
        with screen.working("comparing"):
            launch(program, "interpret", options.grid, before)
        _agree(_buffers(func, values), _buffers(func, before))
        if not options.json:
            print("the interpreter agrees")


def given_values(func: Func, texts: Sequence[str], seed: int) -> list[Any]:
    """Return what a function is called with, as `NAME=VALUE` says it for each parameter."""
    given, rng = _given(func, texts), np.random.default_rng(seed)
    return [_value(argument, given[argument.name], rng) for argument in func.arguments]


def _copied(values: Sequence[Any]) -> list[Any]:
    return [value.copy() if hasattr(value, "copy") else value for value in values]


def _buffers(func: Func, values: Sequence[Any]) -> dict[str, Array]:
    """Return the arguments that are buffers, by name."""
    pairs = zip(func.arguments, values, strict=True)
    return {argument.name: value for argument, value in pairs if isinstance(argument.type, Ptr)}


def entry_of(module: Module, name: str | None) -> Func:
    """Return the function to run: the named one, or the only one there is."""
    launchable = _launchable(module)
    if name is not None:
        funcs = [func for func in module.funcs() if func.body is not None]
        names = [func.name for func in funcs]
        check_known(name.removeprefix("@"), names, "function", f"it has {', '.join(names) or 'none'}")
        launchable = [func for func in funcs if func.name == name.removeprefix("@")]
    if len(launchable) != 1:
        shown = ", ".join(func.name for func in launchable) or "none"
        help = "pass --entry NAME" if name is None else "give one of them another name"
        raise CommandError(f"which function? it has {shown}\n    help: {help}")
    return launchable[0]


def _given(func: Func, texts: Sequence[str]) -> dict[str, str]:
    given: dict[str, str] = {}
    for text in texts:
        name, separator, value = text.partition("=")
        if not separator:
            raise CommandError(f"{text!r} is not NAME=VALUE")
        check_known(name.removeprefix("%"), [a.name for a in func.arguments], "parameter", _signature(func))
        if name.removeprefix("%") in given:
            raise CommandError(f"{name} is given twice")
        given[name.removeprefix("%")] = value
    missing = [a.name for a in func.arguments if a.name not in given]
    if missing:
        raise CommandError(f"no value for {', '.join(missing)}\n    help: @{func.name} takes {_signature(func)}")
    return given


def _signature(func: Func) -> str:
    return ", ".join(f"{a.name}: {a.type}" for a in func.arguments) or "nothing"


def _value(argument: Value, text: str, rng: np.random.Generator) -> Any:
    if isinstance(argument.type, Scalar):
        return _number(argument.name, argument.type, text)
    if not isinstance(argument.type, Ptr):
        raise CommandError(f"{argument.name} is {argument.type}: a launch passes pointers and numbers")
    dtype = argument.type.element.dtype.numpy
    maker, separator, shape = text.partition(":")
    make = MAKERS.get(maker) or _numbers(maker)
    if separator and make:
        extents = shape_of(shape)
        try:
            made = make(rng, extents)
        except (MemoryError, ValueError) as error:
            raise CommandError(f"{argument.name}={text}: {error}") from None
        if dtype.kind in "iu" and maker == "random":
            made = made * INTEGER_RANGE
        with np.errstate(invalid="ignore"):
            filled = made.astype(dtype)
        if dtype.kind in "iu" and maker not in MAKERS and np.any(made != filled):
            raise CommandError(f"{argument.name} points to {argument.type.element}, which {maker} is not")
        return filled
    if not text.endswith(".npy"):
        raise CommandError(f"{argument.name}={text} is neither a .npy file nor one of {', '.join(MAKERS)} with a shape")
    return _loaded(argument.name, text, dtype)


def _loaded(name: str, file: str, dtype: np.dtype[Any]) -> Array:
    """Return what a file holds; of elements that NumPy has no type for, their bits."""
    is_ours = dtype.isbuiltin != 1
    bits = f"{name} points to {dtype}{f': save values.view(np.uint{8 * dtype.itemsize})' if is_ours else ''}"
    try:
        loaded: Array = np.load(file, allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise CommandError(f"{file} cannot be read: {error}\n    help: {bits}") from None
    is_bits = loaded.dtype.itemsize == dtype.itemsize and loaded.dtype.kind in ("Viu" if is_ours else "V")
    if loaded.dtype != dtype and not is_bits:
        raise CommandError(f"{file} holds {loaded.dtype} elements, and {bits}")
    return np.reshape(np.frombuffer(bytearray(loaded.tobytes()), dtype), loaded.shape)


def _numbers(text: str) -> Callable[[Any, tuple[int, ...]], Any] | None:
    """Return what fills a buffer with a number, or with integers of a range; nothing where the text is neither."""
    low, between, high = text.partition("..")
    try:
        numbers = int(low, 0) if low.lstrip("-").isalnum() else float(low), int(high) if between else 0
    except ValueError:
        return None
    if between:
        return lambda rng, shape: rng.integers(*numbers, shape, endpoint=True)
    return lambda rng, shape: np.full(shape, numbers[0])


def _number(name: str, type_: Scalar, text: str) -> float:
    """Return a number as a scalar parameter takes it."""
    try:
        number = CONDITIONS[text] if type_ == I1 else float(text) if type_.is_float else int(text, 0)
    except (KeyError, ValueError):
        raise CommandError(f"{name} is {type_}, and {text!r} is no such number") from None
    if type_.is_float and isfinite(number) and not isfinite(round_scalar(number, type_.dtype)):
        raise CommandError(f"{name} is {type_}, which cannot hold {text}")
    return number


def launch(program: Program, platform: str, grid: int, values: Sequence[Any]) -> None:
    """Run a program on values, which it may write."""
    from tilewright.programs.compiler import compile

    flat = [value.reshape(-1) if hasattr(value, "reshape") else value for value in values]
    try:
        compile(program, platform=platform)(grid, *flat)
    except (TypeError, ValueError) as error:
        raise CommandError(str(error)) from None


def _report(before: Mapping[str, Array], after: Mapping[str, Array], *, is_json: bool) -> None:
    """Show what every buffer holds now."""
    written = {name: before[name].tobytes() != new.tobytes() for name, new in after.items()}
    if is_json:
        facts = [
            {"name": name, "shape": new.shape, "dtype": str(new.dtype), "holds": _spread(new), "written": written[name]}
            for name, new in after.items()
        ]
        screen.as_json(facts)
        return
    shapes = {name: "x".join(map(str, new.shape)) for name, new in after.items()}
    screen.columns(
        (f"{name} {shapes[name]} {new.dtype}", f"{_spread(new)}{', written' if written[name] else ''}")
        for name, new in after.items()
    )


def _spread(values: Array) -> str:
    if not values.size:
        return "empty"
    wide = values.astype(np.float64)
    return f"{np.min(wide):.6g} to {np.max(wide):.6g}, mean {np.mean(wide):.6g}"


def _save(directory: Path, buffers: Mapping[str, Array]) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    for name, values in buffers.items():
        bits = f"u{values.dtype.itemsize}"  # of what NumPy has no type for, and writes so that nothing reads it
        kept = values.dtype if values.dtype.isbuiltin == 1 else bits
        np.save(directory / f"{name}.npy", np.reshape(np.frombuffer(values.tobytes(), kept), values.shape))


def _agree(native: Mapping[str, Array], interpreted: Mapping[str, Array]) -> None:
    for name, ours in native.items():
        a, b = ours.astype(np.float64), interpreted[name].astype(np.float64)
        if not np.allclose(a, b, rtol=1e-3, atol=1e-5, equal_nan=True):
            with np.errstate(invalid="ignore"):
                apart = np.where((a == b) | np.isnan(a) & np.isnan(b), 0.0, np.nan_to_num(np.abs(a - b), nan=np.inf))
            worst = np.unravel_index(int(np.argmax(apart)), a.shape)
            at = ", ".join(str(int(n)) for n in worst)
            raise CommandError(
                f"{name}[{at}] is {a[worst]:.9g}, and {b[worst]:.9g} in the interpreter\n"
                "    help: this is a bug in Tilewright, not in your kernel: please report it"
            )


TARGET = option(
    "--target", default="a5", choices=("a5", "a3"), help="the machine of text that names none (default: a5)"
)
CHECK = (files("+"), TARGET, switch("--show", "print the tile IR each function becomes"))
RUN = (
    option("file", metavar="FILE", type=Path),
    option("arguments", metavar="NAME=VALUE", nargs="*", help="one for each parameter"),
    option("--entry", metavar="NAME", help="which function, where the file has several"),
    option("--grid", type=int, default=1, metavar="N", help="how many blocks (default: 1)"),
    TARGET,
    option("--platform", default="cpu", choices=("cpu", "interpret"), help="who runs it (default: cpu)"),
    switch("--compare", "run the interpreter too; differences end with status 1"),
    option("--seed", type=int, default=0, help="of random buffers (default: 0)"),
    option("--save", metavar="DIR", type=Path, help="write every buffer as it is afterwards to NAME.npy"),
)
COMMANDS = (
    Command("check", "parse, verify and lower", "Check files of PTO text.", _check, CHECK),
    Command("run", "run a function", "Run a function.", _run, RUN, EPILOG),
    *pto_texts.COMMANDS,
)
COMMAND = Command("pto", "check and run PTO text", ABOUT, epilog=EPILOG, inner=COMMANDS)
