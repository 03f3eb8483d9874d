"""The classes of mistakes, as callers catch them; what is raised is often a more exact one below."""

from tilewright.errors import InternalError as InternalError
from tilewright.errors import InvalidOperationError as InvalidOperationError
from tilewright.errors import ParserError as ParserError
from tilewright.errors import ParserSyntaxError as ParserSyntaxError
from tilewright.errors import ParserTypeError as ParserTypeError
from tilewright.errors import SSAViolationError as SSAViolationError
from tilewright.errors import UndefinedVariableError as UndefinedVariableError
from tilewright.errors import UnsupportedFeatureError as UnsupportedFeatureError

__all__ = ["InternalError", "InvalidOperationError", "ParserError", "ParserSyntaxError", "ParserTypeError"]
__all__ += ["SSAViolationError", "ScopeIsolationError", "UndefinedVariableError", "UnsupportedFeatureError"]


class ScopeIsolationError(ParserError):
    """A name that a scope keeps for itself: there to be caught, though no scope does that."""
