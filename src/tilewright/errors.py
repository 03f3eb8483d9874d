"""Errors: one class per mistake, each able to show the author's own line.

A `KernelError` is the author's to mend: it renders as file, line and column, what is wrong, the source line
with carets, the values that matter and a `help:` line. An `InternalError` is ours and says so. Whoever raises
knows what is wrong; whoever knows where adds the place with `locate`, so that a type rule needs no spans.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tilewright.cautions import CacheWarning as CacheWarning
from tilewright.cautions import DependentTurnsWarning as DependentTurnsWarning
from tilewright.cautions import DroppedWriteWarning as DroppedWriteWarning
from tilewright.cautions import KernelWarning as KernelWarning
from tilewright.cautions import WholeQuotientWarning as WholeQuotientWarning
from tilewright.notebook import Shown
from tilewright.source import UNKNOWN, Place, Span, shown, span_at


class TilewrightError(Shown, Exception):
    """The root of everything this package raises on purpose."""


class InternalError(TilewrightError):
    """A broken promise inside the compiler: never the author's fault."""

    def __init__(self, message: str) -> None:
        super().__init__(f"{message}\n    this is a bug in Tilewright, not in your kernel: please report it")


class ArtifactError(TilewrightError, ValueError):
    """Compiled code that is damaged, of another format, or made for another processor."""

    def __init__(self, message: str) -> None:
        super().__init__(f"{message}\n    help: compile the program again, on this machine")


class ExportError(TilewrightError, ValueError):
    """A program that cannot be handed to C, or a machine that cannot do it."""


class PartialCodegenError(TilewrightError, RuntimeError):
    """A program of which some kernels could not be made; `files` are the texts of those that were, by name."""

    def __init__(self, message: str, files: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.files = dict(files or {})


class NoTorchError(TilewrightError, NotImplementedError):
    """Something that cannot be written down in torch."""


class KernelError(TilewrightError):
    """A mistake in a kernel, shown at the line that holds it."""

    hint: str = ""
    """What to try: for a class, unless the one who raises knows better."""

    def __init__(
        self,
        message: str,
        span: Place | None = None,
        hint: str | None = None,
        note: str | None = None,
        source_lines: Sequence[str] | None = None,
        *,
        spans: Sequence[Span] = (),
        blame: Sequence[str] = (),
        notes: Iterable[str] = (),
        help: str = "",
    ) -> None:
        super().__init__(message)
        self.message = message
        self.spans = tuple(spans) if span is None else (span_at(span, source_lines or ()),)
        self.blame = tuple(blame)
        self.notes = tuple(notes) if note is None else (note, *notes)
        self.hint = help or hint or self.hint
        self.function = ""

    @property
    def place(self) -> Span:
        """Where the mistake is; unknown until somebody locates it."""
        return self.spans[0] if self.spans else UNKNOWN

    @property
    def span(self) -> Place | None:
        """Where the mistake is, by name, or None."""
        return self.place.named if self.place.is_known else None

    @property
    def help(self) -> str:
        """What to try, or nothing."""
        return self.hint

    @property
    def note(self) -> str | None:
        """The values that matter, one to a line, or None."""
        return "\n".join(self.notes) or None

    @property
    def source_lines(self) -> list[str] | None:
        """The lines of the text that holds the mistake, or None."""
        source = self.place.source
        return None if source is None else [line.rstrip("\n") for line in source.lines]

    def locate(self, spans: Sequence[Span], notes: Iterable[str] = ()) -> None:
        """Add the place and the values, unless the error already has a place."""
        if not self.place.is_known:
            self.spans = tuple(spans)
            self.notes += tuple(notes)

    def __str__(self) -> str:
        where = f"in kernel `{self.function}`: " if self.function else ""
        return shown(f"{where}{self.message}", self.spans, self.notes, self.hint)


class ParserError(KernelError):
    """A kernel whose text does not say a program."""


class ParserSyntaxError(ParserError):
    """Text that is Python but not the language, or not even Python."""


class NotPythonError(ParserSyntaxError, SyntaxError):
    """Text that is not even Python."""

    hint = "kernels are looked for once Python itself has read the text"

    def __init__(self, message: str, *, spans: Sequence[Span] = (), help: str = "") -> None:
        super().__init__(message, spans=spans, help=help)
        self.msg = str(self)  # what a traceback prints of a SyntaxError


class TextExecutionError(ParserSyntaxError):
    """Text whose own Python code fails when it runs."""

    hint = "the text runs like a module before its kernels are read: what it names must be there"


class ResultCountError(ParserError, ValueError):
    """Text that defines no kernel, or several."""


class EmptyProgramError(ParserSyntaxError):
    """A program without functions."""

    hint = "decorate its methods with @pl.function"


class DuplicateFunctionError(ParserError):
    """Two functions of one program with the same name."""

    hint = "rename one of them"


class ParserTypeError(ParserError, TypeError):
    """Values that do not fit together."""


class InvalidOperationError(ParserError):
    """An operation that does not exist, or not for these values, or not here."""


class UndefinedVariableError(ParserError, NameError):
    """A name that stands for nothing here."""


class DirectiveError(ParserSyntaxError):
    """A directive with arguments it does not take, or without those it needs."""


class UnsupportedFeatureError(ParserSyntaxError):
    """A Python statement or expression the language does not have."""


class NestingError(UnsupportedFeatureError):
    """Expressions or blocks inside each other beyond what Python's own stack holds."""

    hint = "bind parts of long expressions to names, and move deep branches into functions"


class SubscriptError(UnsupportedFeatureError):
    """A subscript that Python has and the language does not."""


class ElementWriteError(UnsupportedFeatureError):
    """One element assigned with a subscript."""


class UncallableError(UnsupportedFeatureError):
    """A call of something that kernels cannot call."""


class LoopExitError(UnsupportedFeatureError, InvalidOperationError):
    """A `break` or `continue` out of a loop that has no order, or out of none."""


class MisplacedDirectiveError(UnsupportedFeatureError):
    """A name that shapes a kernel, where it shapes nothing."""


class PlainRangeError(ParserSyntaxError):
    """A `for` over something other than the language's own loops."""

    hint = "write `for i in pl.range(...)`; `pl.parallel`, `pl.unroll` and `pl.pipeline` promise more"


class UndefinedNameError(UndefinedVariableError):
    """A name nobody has bound."""


class OutOfScopeError(UndefinedVariableError):
    """A value used where not every path has bound it."""


class UnknownOpError(InvalidOperationError, AttributeError):
    """An op the language does not have."""


class UnknownAttributeError(ParserTypeError):
    """An attribute or method that a value does not have."""


class MissingAnnotationError(ParserTypeError):
    """A parameter without a type."""

    hint = "annotate it, for example `x: pl.Tensor[[64, 64], pl.FP32]` or `n: pl.Scalar[pl.INT32]`"


class AnnotationError(ParserTypeError):
    """An annotation that is no type of the language."""


class AnnotationMismatchError(AnnotationError):
    """An annotation that is not the type of its value."""

    hint = "annotations of locals are optional: drop it, or let it say what the value is"


class UnboundSymbolError(AnnotationError):
    """A dynamic dim whose value no argument tells."""


class DynamicConflictError(AnnotationError, ValueError):
    """One axis or name with two `pl.dynamic` names."""


class OperandError(ParserTypeError, InvalidOperationError):
    """An operand of the wrong kind."""


class MixedKindsError(OperandError):
    """An op between tensors and tiles."""

    hint = (
        "load the tensor into a tile first, or store the tile; pl.zeros and pl.tile.full make tiles, pl.full a tensor"
    )


class AttributeValueError(InvalidOperationError, ValueError):
    """A static option with a value the op does not take."""


class NotStaticError(ParserTypeError, InvalidOperationError):
    """A run-time value where the compiler needs to know one."""


class StaticEvaluationError(ParserTypeError):
    """An expression over known values that Python itself refuses."""

    hint = "its operands are known, so Python computes this while the kernel is read"


class ShapeMismatchError(ParserTypeError, InvalidOperationError):
    """Operands whose shapes do not fit."""

    hint = "make the shapes agree: folds keep an axis with keepdims=True, pl.reshape, pl.slice, pl.expands fit others"


class DTypeMismatchError(ParserTypeError, InvalidOperationError):
    """Operands whose element types do not fit."""


class OutOfBoundsError(InvalidOperationError, IndexError):
    """An access outside a tensor or tile."""

    hint = "move the access, or make it smaller, so that it lies inside"


class UndefinedElementError(InvalidOperationError, ValueError):
    """A look at elements of a tile that nobody wrote."""


class ConditionError(ParserTypeError):
    """A branch or loop condition that is not a bool."""

    hint = "compare explicitly, for example `n > 0`"


class YieldMismatchError(ParserTypeError, ParserSyntaxError):
    """Carried values whose number or types disagree."""


class ReturnMismatchError(ParserTypeError):
    """Returned values that are not what the function says."""


class ReassignmentError(ParserTypeError):
    """A carried name bound to another type."""

    hint = "use a new name for the new value"


class ArgumentCountError(ParserTypeError, InvalidOperationError):
    """A call with too many, too few or unknown arguments."""


class RecursiveCallError(ParserError):
    """A function that calls itself, directly or through others."""

    hint = "kernels are unrolled into one program: use a loop"


class StaticAssertionError(ParserError, AssertionError):
    """A `pl.static_assert` that does not hold."""

    hint = "the kernel's author asked for this: change what it is called with, or the assertion"


class SSAViolationError(ParserError):
    """A name bound twice in a `strict_ssa=True` function."""

    hint = "give the second value its own name, or drop strict_ssa=True"
    previous_span: Place | None = None
    """Where it was bound first."""


class ControlPlaneComputeError(KernelError):
    """Compute in an orchestration function outside any kernel scope."""

    hint = "put it inside `with pl.at(level=pl.Level.CORE_GROUP):` or into an InCore function"


class PredicateError(KernelError):
    """A task that may be skipped, and whose result would then not be there."""

    hint = "create the tensor before the task, store into it there, and go on with that tensor"


class DependentBlocksError(KernelError):
    """A block of a grid that goes on from what another one has computed."""


class VerificationError(KernelError):
    """IR that breaks a rule every program must keep."""


class ExecutionError(KernelError, RuntimeError):
    """A program that did something undefined while it ran.

    Native code keeps one text for each of its errors: what to try is the second line of that.
    """

    def __init__(self, text: str, *, spans: Sequence[Span] = (), notes: Iterable[str] = (), help: str = "") -> None:
        message, _, advice = text.partition("\n")
        super().__init__(message, spans=spans, notes=notes, help=help or advice)


class RaceError(ExecutionError):
    """Turns of a parallel loop, or blocks of a grid, that touch one element, one of them writing it."""


class SourceUnavailableError(KernelError, OSError):
    """A kernel whose text cannot be had."""


class RunOnlyError(TilewrightError, RuntimeError):
    """A program that would have to be compiled where only kept ones may run."""


class DriftError(TilewrightError, RuntimeError):
    """A value that a kernel was compiled with has changed since."""


class TuningError(TilewrightError, RuntimeError):
    """A tuned kernel none of whose configurations can be run."""


class OutsideKernelError(KernelError, RuntimeError):
    """A language function called as plain Python."""
