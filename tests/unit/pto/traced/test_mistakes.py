"""Mistakes in traced bodies: each message is a file, and shows the author's own line."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import Golden
from unit.pto.traced import mistakes
from unit.pto.traced.tracing import traced

from tilewright.errors import KernelError

MESSAGES = Path(__file__).parent / "messages"
each_mistake = pytest.mark.parametrize("name", sorted(mistakes.MISTAKES))


def mistake(name: str) -> KernelError:
    _, function = mistakes.MISTAKES[name]
    with pytest.raises(KernelError) as caught:
        traced(function)
    return caught.value


@each_mistake
def test_the_message_is_the_one_in_its_file_and_says_where_and_what_to_try(name: str, golden: Golden) -> None:
    raised = mistake(name)
    kind, _ = mistakes.MISTAKES[name]
    assert type(raised) is kind, raised
    text = str(raised).replace(mistakes.__file__, "mistakes.py")
    numberless = "\n".join(line for line in text.splitlines())
    golden(f"{name}.txt", numberless + "\n", MESSAGES)
    assert raised.place.is_known
    assert raised.place.filename == mistakes.__file__
    assert raised.function == name
    assert str(raised).splitlines()[-1].startswith("    help: ")
