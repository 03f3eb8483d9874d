"""Objects: what a listing shows, and that nothing broken is listed."""

from __future__ import annotations

import re
from functools import cache

import pytest

from tilewright.errors import ArtifactError
from tilewright.native.assemble import assemble
from tilewright.native.elf import listing
from tilewright.native.target import PRESETS

TEXT = """
@table = internal constant [4 x i64] [i64 10, i64 20, i64 30, i64 40], align 64
@counter = global i64 5
declare void @free(ptr)
define i64 @lookup(i64 %i) nounwind {
  %at = getelementptr i64, ptr @table, i64 %i
  %v = load i64, ptr %at
  ret i64 %v
}
define void @release(ptr %x) nounwind {
  call void @free(ptr %x)
  ret void
}
"""


@cache
def made(target: str = "x86-64") -> bytes:
    return assemble(TEXT, PRESETS[target]).object


@pytest.mark.parametrize(
    "line",
    [
        rf"relocatable object for x86-64, {len(made())} bytes",
        r"  \.text +\d+ bytes  align 16 +code",
        r"  \.data +8 bytes  align 8 +data",
        r"  \.text\+0x0 +\d+ lookup",
        r"  \.data\+0x0 +8 counter",
        r"  outside +free",
        r"  \.text\+0x\w+ +PLT32 +free-0x4",
    ],
)
def test_a_listing_shows(line: str) -> None:
    assert re.search(rf"^{line}$", listing(made()), re.MULTILINE), listing(made())


def test_objects_of_other_machines_are_listed_too() -> None:
    shown = listing(made("aarch64"))
    assert shown.startswith("relocatable object for aarch64") and "lookup" in shown


def test_a_listing_names_nothing_that_is_not_loaded() -> None:
    assert not re.search(r"\.symtab|\.strtab|\.eh_frame|\.note", listing(made()))


def test_an_object_cut_off_anywhere_is_refused() -> None:
    for length in range(len(made())):
        with pytest.raises(ArtifactError, match="broken object"):
            listing(made()[:length])
