"""Wrong kernels: each file of `kernels/` makes one mistake, and its message is the text file beside it."""

from __future__ import annotations

import importlib.util
import re
import traceback
from dataclasses import dataclass
from pathlib import Path

import pytest
from conftest import Golden

import tilewright
from tilewright import errors
from tilewright.pto import errors as pto_errors

KERNELS = Path(__file__).parent / "kernels"
CALLS = Path(__file__).parent / "calls"
"""Scripts that go wrong after their kernels were read."""
REJECTS = Path(__file__).parents[1] / "unit/pto/rejects"
OURS = str(Path(tilewright.__file__).parent)


@dataclass(frozen=True)
class Mistake:
    """What importing a wrong kernel raised, and what its file says it raises."""

    raised: Exception
    expected: str

    def message(self, path: Path) -> str:
        """Return the message with the file's name for its path, and without the numbers of texts."""
        return re.sub(r"(<string>|\.txt)#\d+", r"\1", str(self.raised).replace(str(path), path.name)) + "\n"


def make(path: Path) -> Mistake:
    spec = importlib.util.spec_from_file_location(f"wrong_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        return Mistake(error, module.EXPECTED)
    pytest.fail(f"{path.name} raises nothing")


each_kernel = pytest.mark.parametrize("path", sorted(KERNELS.glob("*.py")), ids=lambda path: path.stem)


@each_kernel
def test_a_mistake_is_told_by_its_class_its_place_and_what_to_try(path: Path, golden: Golden) -> None:
    mistake = make(path)
    assert type(mistake.raised).__name__ == mistake.expected, mistake.raised
    golden(f"{path.stem}.txt", mistake.message(path), KERNELS)
    check_place_and_help(mistake, path)
    check_frames(mistake, path)


@pytest.mark.parametrize("path", sorted(CALLS.glob("*.py")), ids=lambda path: path.stem)
def test_what_goes_wrong_later_is_told_by_its_class_and_what_to_try(
    path: Path, golden: Golden, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("TILEWRIGHT_RUN_ONLY", "0")
    mistake = make(path)
    assert type(mistake.raised).__name__ == mistake.expected, mistake.raised
    message = re.sub(r"[0-9a-f]{12,}|\d+ bytes|not \d+", "N", mistake.message(path).replace(str(tmp_path), "CACHE"))
    golden(f"{path.stem}.txt", message.replace(f"{path.parent}/", ""), CALLS)
    assert "help: " in message or "Fix: " in path.read_text(encoding="utf-8")


def check_place_and_help(mistake: Mistake, path: Path) -> None:
    """Fail unless a message points at the mistake and ends with what to try."""
    *_, last = mistake.message(path).splitlines()
    assert last.startswith("    help: ")
    if isinstance(mistake.raised, errors.KernelError):
        assert mistake.raised.place.is_known
        assert "^" in mistake.message(path)


def check_frames(mistake: Mistake, path: Path) -> None:
    """Fail unless a traceback shows the author, not the compiler."""
    frames = traceback.extract_tb(mistake.raised.__traceback__)
    assert sum(frame.filename.startswith(OURS) for frame in frames) <= 2
    assert any(frame.filename == str(path) for frame in frames)


def test_every_class_of_mistake_has_a_kernel() -> None:
    texts = [path.read_text(encoding="utf-8") for folder in (KERNELS, CALLS) for path in folder.glob("*.py")]
    made = {name for text in texts for name in re.findall(r'^EXPECTED = "(\w+)"$', text, re.MULTILINE)}
    named = {**vars(errors), **vars(pto_errors)}
    parsed = {path.read_text(encoding="utf-8").partition("\n")[0].removeprefix("// ") for path in REJECTS.glob("*.pto")}
    classes = {name: kind for name, kind in named.items() if isinstance(kind, type) and name not in parsed}
    bases = {base.__name__ for kind in classes.values() for base in kind.__bases__}
    kinds = {name for name, kind in classes.items() if issubclass(kind, (errors.TilewrightError, Warning))}
    not_a_kernels = {"InternalError", "PartialCodegenError"}  # a bug of ours, and a name for scripts of others
    assert kinds - bases - not_a_kernels - made == set()


def test_every_golden_text_has_a_kernel() -> None:
    for folder in (KERNELS, CALLS):
        assert {path.stem for path in folder.glob("*.txt")} == {path.stem for path in folder.glob("*.py")}
