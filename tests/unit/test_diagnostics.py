"""Diagnostics: the classes callers catch, what an error tells, and messages without native noise."""

from __future__ import annotations

import pytest

import tilewright.language as pl
from tilewright import errors
from tilewright.language.parser import diagnostics
from tilewright.language.parser.diagnostics import exceptions
from tilewright.source import Source, Span, excerpt

WRONG = """
@pl.function
def kernel(x: pl.Tensor[[16], pl.FP32]):
    return y
"""

NAMES = (
    *("InternalError", "InvalidOperationError", "ParserError", "ParserSyntaxError", "ParserTypeError"),
    *("SSAViolationError", "ScopeIsolationError", "UndefinedVariableError", "UnsupportedFeatureError"),
)


@pytest.mark.parametrize("name", NAMES)
def test_a_class_has_one_home_and_three_names(name: str) -> None:
    assert getattr(diagnostics, name) is getattr(exceptions, name) is getattr(pl.parser, name)


def test_an_error_tells_where_what_and_what_to_try() -> None:
    with pytest.raises(pl.parser.UndefinedVariableError) as caught:
        pl.parse(WRONG, "wrong.py")
    error = caught.value
    assert error.span is not None and error.source_lines is not None and error.hint
    assert (
        (error.span["line"], error.span["column"]) == (4, 11) == (error.span["begin_line"], error.span["begin_column"])
    )
    assert error.span["file"] == error.span["filename"] and error.span["filename"].startswith("wrong.py")
    assert error.source_lines[error.span["line"] - 1] == "    return y"
    assert error.note is None


def test_an_error_is_made_of_what_it_tells() -> None:
    with pytest.raises(pl.parser.UndefinedVariableError) as caught:
        pl.parse(WRONG, "wrong.py")
    error = caught.value
    again = pl.parser.UndefinedVariableError(error.message, error.span, error.hint, "a note", error.source_lines)
    assert (again.message, again.span, again.hint, again.note) == (error.message, error.span, error.hint, "a note")
    assert "return y" in str(again) and again.source_lines == error.source_lines
    assert str(pl.parser.ParserError("said", span=None, hint=None, note=None)) == "said"


def test_an_error_without_a_place_says_so() -> None:
    error = errors.ParserError("wrong", notes=["x is 1", "y is 2"])
    assert error.span is None and error.source_lines is None and error.note == "x is 1\ny is 2"


def test_codes_are_those_of_the_closest_class() -> None:
    assert diagnostics.get_error_code(errors.ParserError) is diagnostics.ErrorCode("E001")
    assert diagnostics.get_error_code(errors.PlainRangeError) is diagnostics.ErrorCode.SYNTAX
    assert diagnostics.get_error_code(errors.UnknownOpError("x")) is diagnostics.ErrorCode.INVALID_OPERATION
    assert diagnostics.get_error_code(errors.UndefinedNameError).category is diagnostics.ErrorCategory.SCOPE
    assert {code.category for code in diagnostics.ErrorCode} == set(diagnostics.ErrorCategory)


def test_bugs_are_not_taken_for_mistakes() -> None:
    assert issubclass(errors.InternalError, diagnostics.BUG_CLASS_EXCEPTIONS)
    assert not issubclass(errors.ParserSyntaxError, diagnostics.BUG_CLASS_EXCEPTIONS)


def test_a_renderer_shows_the_code_and_the_line() -> None:
    with pytest.raises(pl.parser.ParserError) as caught:
        pl.parse(WRONG)
    text = diagnostics.ErrorRenderer().render(caught.value)
    assert text.startswith("error[E004]: ") and "return y" in text and "^" in text
    assert "\033[" in diagnostics.ErrorRenderer(use_color=True).render(caught.value)


@pytest.mark.parametrize(
    ("text", "concise"),
    [
        ("plain", "plain"),
        ("what\n\nC++ Traceback (most recent call last):\n  f", "what"),
        ("what\n\nNo stack trace available", "what"),
        ("what [f.py:3:-1]\nCheck failed: x > 0", "what [f.py:3:-1]"),
        ("a\nCheck failed: b\nCheck failed: c", "a\nCheck failed: b"),
        ("  padded \n", "padded"),
    ],
)
def test_a_concise_message_leaves_native_noise_out(text: str, concise: str) -> None:
    assert diagnostics.concise_error_message(ValueError(text)) == concise


@pytest.mark.parametrize("text", ["Check failed: x", "\nCheck failed: x", "Check failed: x\n\nC++ Traceback y"])
def test_a_bare_check_becomes_a_sentence(text: str) -> None:
    assert "PTO_BACKTRACE=1" in diagnostics.concise_error_message(ValueError(text))


def test_a_trailing_span_goes_only_with_a_check() -> None:
    checked, plain = ValueError("what [f.py:3:-1]\nCheck failed: x"), ValueError("what [f.py:3:9]")
    assert diagnostics.concise_error_message(checked, strip_trailing_span=True) == "what"
    assert diagnostics.concise_error_message(plain, strip_trailing_span=True) == "what [f.py:3:9]"


def test_programs_are_told_from_functions(tmp_path: object) -> None:
    function = "@pl.function\ndef f(x: pl.Tensor[[16], pl.FP32]):\n    return x\n"
    with pytest.raises(ValueError, match="Expected @pl.program but found @pl.function"):
        pl.parse_program(function)
    text = "@pl.program\nclass P:\n    @pl.function\n    def f(self, x: pl.Tensor[[16], pl.FP32]):\n        return x\n"
    assert pl.parse_program(text).name == "P"


def test_carets_stand_under_what_is_meant_behind_letters_of_several_bytes() -> None:
    with pytest.raises(pl.parser.UndefinedVariableError) as caught:
        pl.parse(WRONG.replace("return y", "größe_ядро = x; return y"), "wrong.py")
    _, line, carets, *_ = str(caught.value).splitlines()
    assert line.endswith("return y") and [i for i, mark in enumerate(carets) if mark == "^"] == [len(line) - 1]


def test_one_caret_stands_where_nothing_has_a_width() -> None:
    span = Span(Source("a.pto", ("яд %x",)), 1, 5, 1, 5)
    assert excerpt([span])[1] == "   |    ^"
