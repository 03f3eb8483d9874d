"""Wrong texts: each file of `rejects/` makes one mistake, and its message is the text file beside it.

The first line of a file names the class of its error.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import Golden

from tilewright import errors
from tilewright.errors import KernelError
from tilewright.pto.text.parser import parse
from tilewright.pto.verify import verify

REJECTS = Path(__file__).parents[1] / "rejects"


def mistake(path: Path) -> KernelError:
    text = path.read_text(encoding="utf-8")
    with pytest.raises(KernelError) as caught:
        verify(parse(text, path.name))
    return caught.value


def named(path: Path) -> str:
    return path.read_text(encoding="utf-8").splitlines()[0].removeprefix("// ")


@pytest.mark.parametrize("path", sorted(REJECTS.glob("*.pto")), ids=lambda path: path.stem)
def test_the_message_is_the_one_beside_the_text_and_says_where_and_what_to_try(path: Path, golden: Golden) -> None:
    error = mistake(path)
    assert type(error).__name__ == named(path)
    golden(f"{path.stem}.txt", f"{error}\n", REJECTS)
    assert error.place.is_known
    assert "^" in str(error)
    assert str(error).splitlines()[-1].startswith("    help: ")


def test_every_class_of_mistake_has_a_text() -> None:
    made = {named(path) for path in REJECTS.glob("*.pto")}
    kinds = {name: kind for name, kind in vars(errors).items() if name.startswith("Pto") and isinstance(kind, type)}
    assert {name for name, kind in kinds.items() if issubclass(kind, errors.ParserError)} - made == set()


def test_every_message_has_a_text() -> None:
    assert {path.stem for path in REJECTS.glob("*.txt")} == {path.stem for path in REJECTS.glob("*.pto")}
