"""Ops: a call in a body as an op of the module, its arguments sorted into the places that the op's form has.

Arguments come in the order of the text: operands, the offset after its pointer, then words such as `"PAT_ALL"`. What
the text has under a word (`nburst`, `addr`, ...) is a keyword, and so is every other attribute.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from tilewright.errors import ArgumentCountError, AttributeValueError, OperandError
from tilewright.frontend.names import nearest
from tilewright.pto.module import Attribute, Clause, Enumerated, Op, Value
from tilewright.pto.ops.registry import OPS
from tilewright.pto.text.form import Form, Layout, Slot, Syntax
from tilewright.pto.text.kinds import KINDS, fits, shown, signature
from tilewright.pto.traced.arguments import Argument, Arguments, listed, scalar_type
from tilewright.pto.traced.first_lanes import FOLDS, first_lane
from tilewright.pto.traced.inference import Inference, could_be, letters_of
from tilewright.pto.traced.namespace import Operation, Scope
from tilewright.pto.traced.phrases import emit_phrase
from tilewright.pto.traced.scalars import as_integer, constant, static_int
from tilewright.pto.traced.tracer import Tracer
from tilewright.pto.traced.values import describe, is_sequence
from tilewright.pto.types import F32, Ptr, Scalar, Type

Handler = Callable[[Tracer, Arguments], Any]
HANDLERS: dict[str, Handler] = {}


def handles(*names: str) -> Callable[[Handler], Handler]:
    """Register what calls of some names do, instead of what their form says."""

    def register(handler: Handler) -> Handler:
        HANDLERS.update(dict.fromkeys(names, handler))
        return handler

    return register


def call(t: Tracer, operation: Operation, given: Arguments) -> Any:
    """Return what a call of an op gives: a value, a tuple of them, or None."""
    handler = HANDLERS.get(operation.name)
    given.word = operation.name.rpartition(".")[2]
    if handler is not None:
        return handler(t, given)
    form = OPS[operation.op].form
    if form.syntax is Syntax.REGION:
        given.bind(t)
        return Scope(operation.op)
    return emit_phrase(t, operation.op, given) if form.syntax is Syntax.FREE else emit(t, operation.op, given)


def emit(t: Tracer, name: str, given: Arguments, more: tuple[Type, ...] = ()) -> Any:
    """Add the op that a call describes; return its results: their types follow from the operands, then come `more`."""
    form, span = OPS[name].form, t.span(given.node)
    placed = Operands(t, name, form, given)
    placed.read()
    operands, clauses = placed.values(), placed.clauses()
    values = (*operands, *(value for clause in clauses for value in clause.values))
    types = placed.inference(value.type for value in values).results()
    if types is None:
        help = "pass the element type of the result as `dtype=`"
        raise OperandError(f"the type of `{given.name}` does not follow from this", spans=[span], help=help)
    made = tuple(Value("", type_, span) for type_ in (*types, *more))
    t.writer.emit(Op(name, operands, clauses, placed.attributes, made, span=span))
    if name.startswith("pto.get_"):
        t.writer.never_negative.update(made)
    if name in FOLDS:
        t.writer.folds[made[0]] = t.writer.ops
    return made[0] if len(made) == 1 else made or None


def as_text_spells(word: str) -> str:
    """Return an attribute as text spells it: `maskPattern` for `mask_pattern`, where there is one."""
    first, *rest = word.split("_")
    spelled = first + "".join(part.capitalize() for part in rest)
    return spelled if spelled in ATTRIBUTES else word


@dataclass
class Operands:
    """The arguments of one call on their way to the places of a form."""

    t: Tracer
    name: str
    form: Form
    given: Arguments
    positional: list[Argument] = field(default_factory=list[Argument])
    words: list[tuple[str, list[Argument]]] = field(default_factory=list[tuple[str, list[Argument]]])
    attributes: dict[str, Attribute] = field(default_factory=dict[str, Attribute])
    element: Scalar | None = None
    """The element type that `dtype=` asks of the result."""

    def read(self) -> None:
        """Sort the arguments; ArgumentCountError where they do not fit the form."""
        ins = self.form.words.get("ins")
        if "outs" in self.form.words or (ins is not None and (ins.required or self.given.args)):
            self._tile()
        else:
            self._plain()
        for word, argument in self.given.kwargs.items():
            self._keyword(word, argument)
        self._check()

    def _tile(self) -> None:
        """Let the last arguments be what the op writes, as many as the inputs leave; `tmp=` is the last input."""
        args, words = self.given.args, self.form.words
        cut = len(args)
        scratch = self.given.kwargs.pop("tmp", None) if words["ins"].kinds.endswith("z?") else None
        if "outs" in words:
            fewest, most = signature(words["outs"].kinds).count
            cut -= min(max(len(args) - signature(words["ins"].kinds).count[1], fewest), most)
        used = [] if scratch is None or scratch.value is None else [scratch]
        self.words.append(("ins", [*args[: max(cut, 0)], *used]))
        if "outs" in words:
            self.words.append(("outs", args[max(cut, 0) :]))

    def _plain(self) -> None:
        slots = list(self.form.slots)
        for argument in self.given.args:
            if slots and self._fills(argument.value, slots[0]):
                self._slot(slots.pop(0), argument)
            elif self._is_index(argument):
                self.words.append((self.form.index, listed(argument)))
            elif isinstance(argument.value, Scalar):
                self.element = scalar_type(self.t, argument)
            else:
                self.positional.append(argument)

    def _fills(self, value: object, slot: Slot) -> bool:
        """Return whether an argument is the static token that comes next, or a value that may stand for it."""
        if isinstance(value, Value):
            return slot.name in self.form.words
        return isinstance(value, str) or (slot.family in ("int", "event") and isinstance(value, int))

    def _is_index(self, argument: Argument) -> bool:
        """Return whether an argument is what stands in brackets after a pointer: an integer right after it."""
        if not self.form.index or self._under(self.form.index) or len(self.positional) != self.form.indexed + 1:
            return False
        value = argument.value
        is_scalar = isinstance(value, Value) and isinstance(value.type, Scalar) and value.type.is_integer
        return is_scalar or isinstance(value, int) or is_sequence(value)

    def _keyword(self, word: str, argument: Argument) -> None:
        form = self.form
        slot = next((slot for slot in form.slots if word in (slot.name, f"{slot.name}_id")), None)
        word = "loop" if word == "loops" else word
        if slot is not None:
            self._slot(slot, argument)
        elif word in form.words and argument.value is None:
            return
        elif word in form.words:
            rows = _rows(argument) if form.words[word].repeated else [listed(argument)]
            self.words += [(word, row) for row in rows]
        elif word == "dtype":
            self.element = scalar_type(self.t, argument)
        else:
            word = word if word in ATTRIBUTES else as_text_spells(word)
            word = "cmpMode" if word == "mode" and "cmpMode" in OPS[self.name].words else word
            self.attributes[word] = self._attribute(word, argument)

    def _slot(self, slot: Slot, argument: Argument) -> None:
        value = argument.value
        if isinstance(value, Value) and slot.name in self.form.words:
            self.words.append((slot.name, [argument]))
        elif not self._fills(value, slot) or (slot.family == "int" and isinstance(value, str)):
            message = f"the {slot.name} of `{self.given.name}` cannot be {describe(value)}"
            help = "it is a whole number" if slot.family == "int" else "it is a word in quotes"
            raise self.t.error(AttributeValueError, argument.node, message, help=help)
        elif slot.family in ("int", "string", "word"):
            self.attributes[slot.name] = value if isinstance(value, int) else str(value)
        else:
            self.attributes[slot.name] = Enumerated(slot.family, _member(slot.family, value))

    def _attribute(self, word: str, argument: Argument) -> Attribute:
        value, spans = argument.value, [self.t.span(argument.node)]
        if word in self.form.numbers:
            return tuple(static_int(self.t, part.value, part.node, "a size") for part in listed(argument))
        asked = OPS[self.name].words or ATTRIBUTES
        if word not in ATTRIBUTES or word not in asked:
            known = [*self.form.words, *(slot.name for slot in self.form.slots), *asked]
            help = nearest(word, known) or self._usage()
            raise ArgumentCountError(f"`{self.given.name}` has no parameter `{word}`", spans=spans, help=help)
        if not isinstance(value, (bool, int, float, str)) or value in (math.inf, -math.inf) or value != value:
            message = f"`{word}` of `{self.given.name}` cannot be {describe(value)}"
            help = "attributes are numbers, text and bools that are known at compile time"
            raise AttributeValueError(message, spans=spans, help=help)
        return Enumerated(ATTRIBUTES[word], str(value)) if ATTRIBUTES[word] else value

    def _check(self) -> None:
        name, form = self.given.name, self.form
        if not fits(len(self.positional), form.operands):
            self._refuse(f"`{name}` takes {shown(form.operands)} operands, got {len(self.positional)}")
        for slot in form.slots[: form.needed_slots]:
            if slot.name not in self.attributes:
                self._refuse(f"`{name}` needs its {slot.name}")
        for word, layout in form.words.items():
            found = self._under(word)
            may_be_zero = layout.layout is Layout.INDEX and word != "indices"  # where a pointer or a tile begins
            if layout.required and not found and not may_be_zero and not layout.default:
                self._refuse(f"`{name}` needs `{word}`")
            for row in found:
                if not fits(len(row), layout.kinds):
                    noun = {"ins": "inputs", "outs": "destinations"}.get(word, f"values for `{word}`")
                    self._refuse(f"`{name}` takes {shown(layout.kinds)} {noun}, got {len(row)}")

    def _under(self, word: str) -> list[list[Argument]]:
        """Return the groups that stand under a word."""
        return [row for each, row in self.words if each == word]

    def _refuse(self, message: str) -> None:
        raise self.t.error(ArgumentCountError, self.given.node, message, help=self._usage())

    def _usage(self) -> str:
        form = self.form
        if "ins" in form.words:
            ins = shown(form.words["ins"].kinds)
            return f"{self.given.name}(inputs..., destination), with {ins} inputs"
        words = [f"{word}=..." for word, layout in form.words.items() if layout.layout is not Layout.INDEX]
        slots = [f'"{slot.name}"' for slot in form.slots]
        kinds = [KINDS[letter].name for letter in signature(form.operands).rows[0]]
        if form.index and kinds:
            kinds.insert(form.indexed + 1, f"its {form.index}")
        return f"{self.given.name}({', '.join([*kinds, *slots, *words])})"

    def inference(self, types: Iterable[Type] | None = None) -> Inference:
        """Return what the operands say about types."""
        rows = [argument for _, row in self.words for argument in row]
        values = (argument.value for argument in (*self.positional, *rows))
        known = (value.type for value in values if isinstance(value, Value)) if types is None else types
        return Inference(self.name, tuple(known), self.element)

    def values(self) -> tuple[Value, ...]:
        """Return the operands, numbers as constants of the type the op wants."""
        return self._row(self.positional, self.form.operands)

    def clauses(self) -> tuple[Clause, ...]:
        """Return what stands under words, in the order of the form."""
        found: list[Clause] = []
        for word, layout in self.form.words.items():
            rows = self._under(word)
            if not rows and word == self.form.index and (layout.required or self._is_memory()):
                rows = [[Argument(0, self.given.node)] * signature(layout.kinds).count[0]]
            if not rows and layout.default:
                rows = [[Argument(number, self.given.node) for number in layout.default]]
            for row in rows:
                span = self.t.span(row[0].node if row else self.given.node)
                found.append(Clause(word, self._row(row, layout.kinds), span))
        return tuple(found)

    def _is_memory(self) -> bool:
        """Return whether the op reads or writes at an offset that may be left out, where it is zero."""
        place = self.form.indexed
        value = self.positional[place].value if place < len(self.positional) else None
        return isinstance(value, Value) and isinstance(value.type, Ptr)

    def _row(self, row: list[Argument], kinds: str) -> tuple[Value, ...]:
        letters = letters_of(kinds, [argument.value for argument in row])
        return tuple(self._value(argument, letter) for argument, letter in zip(row, letters, strict=True))

    def _value(self, argument: Argument, letter: str) -> Value:
        """Return an argument as an operand of some kind; OperandError for what is not of it."""
        t, value, node = self.t, argument.value, argument.node
        wanted = self.inference().number(letter)
        value = value if could_be(letter, value) else first_lane(t, value)
        if not could_be(letter, value):
            message = f"`{self.given.name}` takes {KINDS[letter].name} here, got {describe(value)}"
            raise t.error(OperandError, node, message, help=self._usage())
        if isinstance(value, Value):
            return as_integer(t, value, wanted, node) if letter == "i" and wanted is not None else value
        if wanted is None and self.name == "pto.vbr" and isinstance(value, float):
            wanted = F32
        if wanted is None:
            help = "make it a value of a type first, `pto.const(value, pto.f32)`, or pass `dtype=`"
            raise t.error(OperandError, node, f"the type of {value!r} does not follow from this", help=help)
        return constant(t, value, wanted, node)


def _rows(argument: Argument) -> list[list[Argument]]:
    """Return the groups of a word that may be repeated: one group, or a list of them."""
    parts = listed(argument)
    return [listed(part) for part in parts] if any(is_sequence(p.value) for p in parts) else [parts]


def _member(family: str, value: object) -> str:
    """Return a word of an enumeration, which a body may write without what all of them start with."""
    if family == "event" and isinstance(value, int):
        return f"EVENT_ID{value}"
    prefix = {"pipe": "PIPE_", "event": "EVENT_"}.get(family, "")
    return str(value) if str(value).startswith(prefix) else f"{prefix}{value}"


ATTRIBUTES = {
    **{"atomicType": "atomic_type", "cmpMode": "cmp", "maskPattern": "mask_pattern", "rmode": "round_mode"},
    **{"precision_mode": "precision_mode", "reluPreMode": "relu_pre_mode", "sat_mode": "saturation_mode"},
    **{"accToVecMode": "acc_to_vec_mode", "quant_type": "quant_type", "notifyOp": "notify_op"},
    **{"gatherOob": "gather_oob", "scatterAtomicOp": "scatter_atomic_op", "scatterOob": "scatter_oob"},
    "coalesce": "coalesce",
    **dict.fromkeys(("exhausted", "isBinary", "isMSB", "offset", "rounds", "upperOrLower"), ""),
    **dict.fromkeys(("blockLen", "descending", "dist", "highPrecision", "mode", "order", "part", "position"), ""),
    **dict.fromkeys(("axis", "rnd", "sat", "src0eqdst", "src1Col"), ""),
}
"""The attributes of ops that have no place of their own in the text, each with its enumeration where it is of one."""
