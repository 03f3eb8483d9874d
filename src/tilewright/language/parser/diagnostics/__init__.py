"""Diagnostics: mistakes, their codes, and how they are shown."""

from tilewright.language.parser.diagnostics import exceptions as exceptions
from tilewright.language.parser.diagnostics.codes import ErrorCategory as ErrorCategory
from tilewright.language.parser.diagnostics.codes import ErrorCode as ErrorCode
from tilewright.language.parser.diagnostics.codes import get_error_code as get_error_code
from tilewright.language.parser.diagnostics.exceptions import *
from tilewright.language.parser.diagnostics.renderer import BUG_CLASS_EXCEPTIONS as BUG_CLASS_EXCEPTIONS
from tilewright.language.parser.diagnostics.renderer import ErrorRenderer as ErrorRenderer
from tilewright.language.parser.diagnostics.renderer import concise_error_message as concise_error_message
