"""Options: what a directive is given, each held against what it may be.

A directive is read from its syntax, since most of what it takes must be written out: flags and names as literals,
lists as lists. What is wrong with the way it is written is a `DirectiveError`, what is wrong with a value in it an
`OperandError`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from keyword import iskeyword
from typing import Any
from unicodedata import normalize

from tilewright.core.enums import SplitMode
from tilewright.core.expr import Attribute, Expr
from tilewright.core.types import TensorType
from tilewright.errors import DirectiveError, OperandError
from tilewright.frontend import optimizations
from tilewright.frontend.arguments import parameters_of
from tilewright.frontend.translator import Translator
from tilewright.records import record


@record
class Options:
    """The arguments of a directive, by name, as they were written."""

    t: Translator
    call: ast.Call
    name: str
    given: Mapping[str, ast.expr]

    def __contains__(self, option: str) -> bool:
        return option in self.given

    def where(self, option: str) -> ast.expr:
        """Return where an option was written, or the whole call."""
        return self.given.get(option, self.call)

    def error(self, option: str, message: str, help: str) -> DirectiveError:
        """Return the error for an option that is not written as it must be."""
        return self.t.error(DirectiveError, self.where(option), message, help=help)

    def value(self, option: str, default: Any = None) -> Any:
        """Return what an option was given, evaluated."""
        return self.t.operand(self.given[option]) if option in self.given else default

    def flag(self, option: str) -> bool:
        """Return an option that is on or off; DirectiveError unless it is written out."""
        node = self.given.get(option)
        if node is None:
            return False
        if not isinstance(node, ast.Constant) or not isinstance(node.value, bool):
            message = f"{option}= of {self.name} must be a boolean literal, got `{ast.unparse(node)}`"
            raise self.error(option, message, f"{option}=True or {option}=False")
        return node.value

    def flags(self, *names: str) -> dict[str, Attribute]:
        """Return the options among some that are on."""
        return {name: True for name in names if self.flag(name)}

    def name_hint(self) -> str:
        """Return the name an author suggests; DirectiveError unless it is an identifier, written out."""
        node = self.given.get("name_hint")
        if node is None:
            return ""
        if not isinstance(node, ast.Constant) or not isinstance(hint := node.value, str):
            message = f"name_hint= of {self.name} must be a string literal, got `{ast.unparse(node)}`"
            raise self.error("name_hint", message, 'name_hint="scores"')
        if hint and (not hint.isidentifier() or iskeyword(hint)):
            message = f"name_hint= of {self.name} must be a valid non-keyword identifier, got {hint!r}"
            raise self.error("name_hint", message, "letters, digits and underscores")
        return hint if hint.isascii() else normalize("NFKC", hint)  # as Python reads the name of a function

    def tensors(self, option: str) -> tuple[Expr, ...]:
        """Return the tensors that a list names; OperandError for anything else."""
        node = self.given.get(option)
        if node is None:
            return ()
        if not isinstance(node, ast.List):
            message = f"{option}= of {self.name} must be a list literal of tensor names, got `{ast.unparse(node)}`"
            raise self.t.error(OperandError, node, message, help=f"{option}=[x, y]")
        found: dict[str, Expr] = {}
        for entry in node.elts:
            name, value = self._tensor(option, entry)
            if name in found:
                message = f"{option}= of {self.name} names '{name}' more than once"
                raise self.t.error(OperandError, entry, message, help="once is enough")
            found[name] = value
        return tuple(found.values())

    def _tensor(self, option: str, entry: ast.expr) -> tuple[str, Expr]:
        if not isinstance(entry, ast.Name):
            message = f"{option}= entries must be bare tensor names, got `{ast.unparse(entry)}`"
            raise self.t.error(OperandError, entry, message, help="bind it to a name first")
        binding = self.t.find(entry.id)
        if binding is None or binding.problem:
            message = f"{option}= of {self.name} references unknown name '{entry.id}'"
            raise self.t.error(OperandError, entry, message, help="name a tensor that is bound before this line")
        value = self.t.evaluate(entry)
        if not isinstance(value, Expr) or not isinstance(value.type, TensorType):
            message = f"'{entry.id}' in {option}= of {self.name} is not a tensor: it is {self.t.describe(value)}"
            raise self.t.error(OperandError, entry, message, help="name tensors")
        return entry.id, value

    def hints(self) -> dict[str, Attribute]:
        """Return what `optimizations=` says; DirectiveError unless it is a list of hints, written out."""
        node = self.given.get("optimizations")
        if node is None:
            return {}
        if not isinstance(node, ast.List):
            message = f"optimizations= of {self.name} must be a list literal, got `{ast.unparse(node)}`"
            raise self.error("optimizations", message, "optimizations=[pl.split(pl.SplitMode.UP_DOWN)]")
        found: dict[str, Attribute] = {}
        for entry in node.elts:
            for name, value in self._hint(entry):
                if name in found:
                    what = "'pl.split(...)'" if name == "split" else "slot_num="
                    message = f"Duplicate {what} in optimizations= of {self.name}"
                    raise self.t.error(DirectiveError, entry, message, help="say it once")
                found[name] = value
        return found

    def _hint(self, entry: ast.expr) -> Sequence[tuple[str, Attribute]]:
        """Return what one hint says: how a kernel is split, and how many buffers cross."""
        callee = self.t.evaluate(entry.func) if isinstance(entry, ast.Call) else None
        is_split = any(callee is each for each in (optimizations.split, optimizations.Split))
        is_slot = any(callee is each for each in (optimizations.cross_core_slot, optimizations.CrossCoreSlot))
        if not isinstance(entry, ast.Call) or not (is_split or is_slot):
            message = f"Unsupported entry in optimizations= of {self.name}: `{ast.unparse(entry)}`"
            help = "pl.split(mode) and pl.cross_core_slot(slot_num=n) are hints"
            raise self.t.error(DirectiveError, entry, message, help=help)
        given = read_options(self.t, entry, optimizations.split if is_split else optimizations.cross_core_slot)
        found = [("slot_num", given.count("slot_num"))] if "slot_num" in given else []
        if not is_split:
            if not found:
                raise given.error(
                    "slot_num", "pl.cross_core_slot() requires slot_num=", "pl.cross_core_slot(slot_num=4)"
                )
            return found
        mode = given.value("mode")
        if not isinstance(mode, SplitMode):
            raise given.error("mode", "pl.split() requires a pl.SplitMode", "pl.split(pl.SplitMode.UP_DOWN)")
        return [("split", mode), *found]

    def count(self, option: str) -> int:
        """Return a positive number that is written out; DirectiveError for anything else."""
        node = self.given[option]
        sign = -1 if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) else 1
        literal = node.operand if isinstance(node, ast.UnaryOp) else node
        if not isinstance(literal, ast.Constant) or type(literal.value) is not int:
            message = f"{option}= of {self.name} must be an integer literal, got `{ast.unparse(node)}`"
            raise self.error(option, message, f"{option}=4")
        if sign * literal.value <= 0:
            message = f"{option}= of {self.name} must be positive, got {sign * literal.value}"
            raise self.error(option, message, f"{option}=4")
        return literal.value


def read_options(t: Translator, call: ast.Call, directive: Callable[..., Any]) -> Options:
    """Return what a directive was given, by the names of its parameters; DirectiveError for what it does not take."""
    name, (positional, allowed) = f"pl.{directive.__name__}()", parameters_of(directive)
    takes = ", ".join((*positional, *allowed)) or "nothing"
    if len(call.args) > len(positional):
        most = {0: "no positional arguments", 1: "at most one positional argument"}
        count = most.get(len(positional), f"at most {len(positional)} positional arguments")
        message = f"{name} takes {count}, got {len(call.args)}"
        raise t.error(DirectiveError, call.args[len(positional)], message, help=f"by name it takes {takes}")
    given = dict(zip(positional, call.args, strict=False))
    for keyword in call.keywords:
        if keyword.arg is None:
            message = f"{name} does not accept **kwargs"
            raise t.error(DirectiveError, keyword.value, message, help="write each argument by its name")
        if keyword.arg in given:
            message = f"{name} got multiple values for argument '{keyword.arg}'"
            raise t.error(DirectiveError, keyword.value, message, help="give it once")
        if keyword.arg not in positional and keyword.arg not in allowed:
            raise t.error(DirectiveError, keyword.value, _unknown(name, keyword.arg), help=f"it takes {takes}")
        given[keyword.arg] = keyword.value
    return Options(t, call, name, given)


def _unknown(name: str, keyword: str) -> str:
    if name == "pl.spmd()":
        return f"{name} got an unexpected keyword argument '{keyword}'"
    return f"Unknown keyword argument '{keyword}' in {name}"
