"""Mistakes in PTO text, in how kernels declare it, and in how they are launched."""

from __future__ import annotations

from tilewright.errors import (
    AttributeValueError,
    KernelError,
    OperandError,
    ParserError,
    ParserSyntaxError,
    ParserTypeError,
    UnknownOpError,
    UnsupportedFeatureError,
)

OPERATOR = "launch it in an operator, which `torch.library.custom_op` makes of a function (docs/torch-operators.md)"
"""What lets torch see a launch: PTO kernels have no operators of their own."""


class PtoSyntaxError(ParserSyntaxError):
    """PTO text that does not follow its grammar."""

    hint = "docs/pto.md has a whole text to compare with"


class PtoNestingError(PtoSyntaxError):
    """PTO regions or attributes inside each other beyond any use."""

    hint = "move the inner regions into functions"


class PtoTypeTextError(PtoSyntaxError):
    """A PTO type that is misspelt or cannot be."""

    hint = "types look like `!pto.ptr<f32, gm>` and `!pto.tile_buf<vec, 16x64xf32>`"


class PtoUnknownOpError(UnknownOpError):
    """An op that PTO does not have."""


class PtoUnsupportedOpError(UnsupportedFeatureError):
    """An op that PTO has and this compiler does not."""

    hint = "write the kernel for one core, with tile or vector ops"


class PtoUndeclaredValueError(ParserError, NameError):
    """A PTO value that nothing before its use defines."""

    hint = "values are visible after their definition, in their region and in those inside it"


class PtoRedefinitionError(ParserError):
    """A PTO name that is defined twice."""

    hint = "give one of them another name"


class PtoTypeMismatchError(ParserTypeError):
    """A PTO value whose type is not the one its use says, or does not go with the others."""

    hint = "make the types agree"


class PtoOperandError(OperandError):
    """A PTO op with too many, too few or the wrong kinds of operands."""

    hint = "`tilewright pto explain` says how an op is written, as does the docs page `pto-reference`"


class PtoAttributeError(AttributeValueError):
    """A PTO op with an attribute it cannot have."""

    hint = "`tilewright pto explain` says how an op is written, as does the docs page `pto-reference`"


class PtoValidShapeError(ParserTypeError):
    """A PTO valid region that its tile buffer cannot have."""

    hint = "a valid region lies inside the tile it is of"


class PtoReturnError(ParserTypeError):
    """PTO results, yields or call arguments that are not what the other side says."""

    hint = "make both sides agree in number and type"


class PtoRecursionError(ParserError):
    """A PTO function that calls itself, directly or through others."""

    hint = "calls are inlined into one program: use `scf.for` or `scf.while`"


class PtoDeclarationError(KernelError, TypeError):
    """A `@pto.jit` function whose parameters or source cannot be what they are declared as."""


class PtoOptionError(KernelError, ValueError):
    """A `@pto.jit` option with a value it does not take."""


class PtoAbiError(KernelError, TypeError):
    """PTO text whose entry is not what its Python declaration says."""

    hint = "make the annotations and the types in the text agree"


class PtoSourceNotFoundError(KernelError, FileNotFoundError):
    """A file of PTO text that cannot be read."""

    hint = "relative paths start from the directory of the file that declares the kernel"


class PtoArgumentError(KernelError, TypeError):
    """A launch or compilation with the wrong number or kinds of arguments."""


class PtoValueError(KernelError, ValueError):
    """A launch with a grid or an argument that the kernel cannot take."""


class PtoNotLaunchableError(KernelError, RuntimeError):
    """A `@pto.jit` function used as if it were of the other kind: launched or called."""
