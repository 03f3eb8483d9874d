"""C functions: an entry as C code that checks its arguments and calls it.

Each entry becomes one function over pointers to packed row-major tensors, numbers, and the dynamic extents, each once
and last. It returns a status: 0, a number of the program's own error table, or a negative one for arguments it refuses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

from tilewright.backends.abi import Number, scalar_word, word_count, word_places
from tilewright.core.enums import ParamDirection
from tilewright.core.expr import Var
from tilewright.core.program import Function
from tilewright.core.types import Extent, ScalarType, TensorType
from tilewright.dtypes import FP64, DataType, round_scalar
from tilewright.errors import ExportError
from tilewright.programs import c_names
from tilewright.records import mutable, record


@mutable
class Refusals:
    """What functions refuse, each with a negative status of its own."""

    messages: list[str] = field(default_factory=list[str])

    def status(self, message: str) -> int:
        """Return the status that means `message`."""
        if message not in self.messages:
            self.messages.append(message)
        return -1 - self.messages.index(message)


@record
class CFunction:
    """An entry as a C function."""

    name: str
    entry: Function
    symbol: str
    directions: Sequence[ParamDirection]
    specialized: Mapping[str, Number]

    @property
    def extents(self) -> list[str]:
        """The dynamic extents, in the order of the tensors that have them."""
        shapes = [param.type.shape for param in self.entry.params if isinstance(param.type, TensorType)]
        return list(dict.fromkeys(name for shape in shapes for extent in shape for name in c_names.symbols(extent)))

    def names(self) -> tuple[list[str], dict[str, str], list[str]]:
        """Return what parameters, extents and results are called."""
        given, results = [param.name_hint for param in self.entry.params], self.results()
        found = c_names.distinct([*given, *self.extents, *(f"result{i}" for i in range(len(results)))])
        count = len(given)
        return found[:count], dict(zip(self.extents, found[count:], strict=False)), found[count + len(self.extents) :]

    def results(self) -> list[DataType]:
        """Return the types of the numbers that the entry returns."""
        return [type_.dtype for type_ in self.entry.return_types if isinstance(type_, ScalarType)]

    def declaration(self) -> str:
        """Return the function's prototype."""
        names, extents, results = self.names()
        declared = zip(self.entry.params, self.directions, names, strict=True)
        params = [_parameter(param, direction, name) for param, direction, name in declared]
        params += [f"int64_t {name}" for name in extents.values()]
        params += [f"{c_names.scalar_type(dtype)} *{name}" for dtype, name in zip(self.results(), results, strict=True)]
        return f"int {self.name}({', '.join(params) or 'void'})"

    def definition(self, refusals: Refusals) -> str:
        """Return the function, which checks its arguments and lays them out as the entry takes them."""
        names, extents, results = self.names()
        unsupported = refusals.status("this processor lacks instructions that the code uses")
        lines = [f"if (!tw_supported()) return {unsupported};"]
        words: list[str] = []
        for param, name in zip(self.entry.params, names, strict=True):
            lines += _checks(param, name, extents, refusals) + self._only(param, name, refusals)
            words += _words(param, name, extents)
        lines += self._run(words, [n for n, p in zip(names, self.entry.params, strict=True) if _is_tensor(p)], refusals)
        lines += _results(self.entry, len(words), results)
        body = "".join(f"    {line}\n" for line in lines)
        return f"{self.declaration()}\n{{\n{body}    return 0;\n}}\n"

    def _only(self, param: Var, name: str, refusals: Refusals) -> list[str]:
        """Return the statement that refuses another number than the code was made for."""
        if param.name_hint not in self.specialized or not isinstance(param.type, ScalarType):
            return []
        number, dtype = self.specialized[param.name_hint], param.type.dtype
        word = scalar_word(dtype, round_scalar(number, dtype)) & (
            0xFFFFFFFF if dtype.is_float() and dtype != FP64 else -1
        )
        status = refusals.status(f"`{param.name_hint}` must be {number}, which the program was compiled for")
        return [f"if ({_words(param, name, {})[0]} != INT64_C({word})) return {status};"]

    def _run(self, words: list[str], tensors: Sequence[str], refusals: Refusals) -> list[str]:
        """Return the call, and the check that tensors it returns are those it was given."""
        returned = list(self.entry.return_types)
        lines = [
            f"int64_t tw_words[{max(1, len(words) + word_count(*returned))}] = {{{', '.join(words) or '0'}}};",
            f"int tw_status = tw_run({self.symbol}, tw_words);",
            "if (tw_status) return tw_status;",
        ]
        for type_, at in zip(returned, word_places(returned), strict=True):
            if isinstance(type_, TensorType):
                known = " && ".join(f"tw_words[{len(words) + at}] != (int64_t)(intptr_t){name}" for name in tensors)
                lines.append(f"if ({known}) return {refusals.status('the program returned a tensor of its own')};")
        return lines


def _is_tensor(param: Var) -> bool:
    return isinstance(param.type, TensorType)


def _parameter(param: Var, direction: ParamDirection, name: str) -> str:
    match param.type:
        case ScalarType():
            return f"{c_names.scalar_type(param.type.dtype)} {name}"
        case TensorType():
            const = "const " if direction is ParamDirection.In else ""
            return f"{const}{c_names.element_type(param.type.dtype)} *{name}"
        case _:
            raise ExportError(f"`{param.name_hint}` is {param.type}, which C cannot pass")


def _checks(param: Var, name: str, extents: Mapping[str, str], refusals: Refusals) -> list[str]:
    """Return the statements that refuse a wrong argument."""
    hint = param.name_hint
    if param.bounds is not None:
        low, high = param.bounds
        limits = f"be {low}" if low == high else f"lie within {low} to {high}"
        status = refusals.status(f"`{hint}` must {limits}")
        return [f"if ({name} < {low} || {name} > {high}) return {status};"]
    if not isinstance(param.type, TensorType):
        return []
    shape = _shape(param.type.shape, extents)
    negative = [f"{text} < 0" for text in shape if not text.isdecimal()]
    status = refusals.status(f"`{hint}` would have a negative extent")
    lines = [f"if ({' || '.join(negative)}) return {status};"] if negative else []
    some = "".join(f" && {text} != 0" for text in shape if not text.isdecimal())
    return [*lines, f"if ({name} == NULL{some}) return {refusals.status(f'`{hint}` is NULL')};"]


def _shape(shape: Sequence[Extent], extents: Mapping[str, str]) -> list[str]:
    return [c_names.extent(extent, dict(extents)) for extent in shape]


def _words(param: Var, name: str, extents: Mapping[str, str]) -> list[str]:
    if isinstance(param.type, ScalarType):
        function = "tw_double" if param.type.dtype == FP64 else "tw_float"
        return [f"{function}({name})" if param.type.dtype.is_float() else f"(int64_t){name}"]
    assert isinstance(param.type, TensorType)
    shape = _shape(param.type.shape, extents)
    strides = [" * ".join(shape[axis + 1 :]) or "1" for axis in range(len(shape))]
    return [f"(int64_t)(intptr_t){name}", *shape, *strides]


def _results(entry: Function, at: int, names: Sequence[str]) -> list[str]:
    """Return the statements that hand numbers to whoever wants them."""
    lines, left = list[str](), iter(names)
    for type_, place in zip(entry.return_types, word_places(entry.return_types), strict=True):
        if isinstance(type_, ScalarType):
            name = next(left)
            lines.append(f"if ({name} != NULL) memcpy({name}, &tw_words[{at + place}], sizeof *{name});")
    return lines
