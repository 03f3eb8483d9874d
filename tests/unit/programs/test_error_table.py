"""Error tables: spans survive being plain data, with the lines they point to."""

from __future__ import annotations

import json
from collections.abc import Sequence

from tilewright.backends.interface import Error
from tilewright.errors import KernelError
from tilewright.programs.error_table import plain_errors, read_errors
from tilewright.source import UNKNOWN, Source, Span

TEXT = Source("kernel.py", ("first\n", "second = é + x\n", "third\n"))
HELPER = Source("helper.py", ("def f():\n", "    \ud800\n"))
INNER = Span(HELPER, 2, 4, 2, 7)


def there_and_back(errors: Sequence[tuple[str, Span]]) -> list[Error]:
    named = [Error(*error, "k", "at {0}") for error in errors]
    back = read_errors(json.loads(json.dumps(plain_errors(named))))
    assert {(error.function, error.exact) for error in back} == {("k", "at {0}")}
    return back


def rendered(message: str, span: Span) -> str:
    return str(KernelError(message, spans=[span]))


def test_errors_look_as_they_did() -> None:
    called = INNER.called_from(Span(TEXT, 2, 0, 2, 6)).called_from(Span(TEXT, 3, 0, 3, 5))
    errors = [("a", Span(TEXT, 2, 9, 2, 12)), ("b", called), ("c", UNKNOWN), ("d", Span(TEXT, 9, 0, 9, 1))]
    back = there_and_back(errors)
    assert [rendered(*error[:2]) for error in back] == [rendered(*error) for error in errors]
    assert "called from kernel.py:3:1" in rendered(*back[1][:2])


def test_lines_that_no_error_points_to_are_left_out() -> None:
    ((_, span, *_),) = there_and_back([("a", Span(TEXT, 2, 9, 2, 10))])
    assert span.source is not None
    assert [span.source.line(number) for number in (1, 2, 3)] == [None, "second = é + x", None]


def test_spans_of_one_source_share_it() -> None:
    first, second = (error.span for error in there_and_back([("a", Span(TEXT, 1)), ("b", Span(TEXT, 2))]))
    assert first.source is second.source
