"""Codes: a short name for each class of mistakes."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from tilewright import errors
from tilewright.language.parser.diagnostics.exceptions import ScopeIsolationError


class ErrorCategory(Enum):
    """What a mistake is about."""

    GENERAL = "general"
    SYNTAX = "syntax"
    TYPE = "type"
    SCOPE = "scope"
    OPERATION = "operation"
    FEATURE = "feature"


class ErrorCode(Enum):
    """The code of each class of mistakes."""

    GENERAL = "E001"
    SYNTAX = "E002"
    TYPE = "E003"
    UNDEFINED_VARIABLE = "E004"
    SSA_VIOLATION = "E005"
    SCOPE_ISOLATION = "E006"
    INVALID_OPERATION = "E007"
    UNSUPPORTED_FEATURE = "E008"

    @property
    def category(self) -> ErrorCategory:
        """What mistakes of this code are about."""
        return _CATEGORIES[self]


_CATEGORIES: Mapping[ErrorCode, ErrorCategory] = {
    ErrorCode.GENERAL: ErrorCategory.GENERAL,
    ErrorCode.SYNTAX: ErrorCategory.SYNTAX,
    ErrorCode.TYPE: ErrorCategory.TYPE,
    ErrorCode.UNDEFINED_VARIABLE: ErrorCategory.SCOPE,
    ErrorCode.SSA_VIOLATION: ErrorCategory.SCOPE,
    ErrorCode.SCOPE_ISOLATION: ErrorCategory.SCOPE,
    ErrorCode.INVALID_OPERATION: ErrorCategory.OPERATION,
    ErrorCode.UNSUPPORTED_FEATURE: ErrorCategory.FEATURE,
}

_CODES: Mapping[type[BaseException], ErrorCode] = {
    errors.ParserError: ErrorCode.GENERAL,
    errors.ParserSyntaxError: ErrorCode.SYNTAX,
    errors.ParserTypeError: ErrorCode.TYPE,
    errors.UndefinedVariableError: ErrorCode.UNDEFINED_VARIABLE,
    errors.SSAViolationError: ErrorCode.SSA_VIOLATION,
    ScopeIsolationError: ErrorCode.SCOPE_ISOLATION,
    errors.InvalidOperationError: ErrorCode.INVALID_OPERATION,
    errors.UnsupportedFeatureError: ErrorCode.UNSUPPORTED_FEATURE,
}


def get_error_code(kind: type[BaseException] | BaseException) -> ErrorCode:
    """Return the code of a mistake or of a class of them: that of the closest class that has one."""
    mistake = kind if isinstance(kind, type) else type(kind)
    return next((_CODES[base] for base in mistake.__mro__ if base in _CODES), ErrorCode.GENERAL)
