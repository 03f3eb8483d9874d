"""Damaged texts: whatever is done to a valid one, it is read or refused with a place, and soon."""

from __future__ import annotations

import re
from random import Random
from time import process_time

import pytest
from unit.pto.equality import same
from unit.pto.text.samples import VALID, text_of

from tilewright.errors import KernelError
from tilewright.pto.text.parser import parse
from tilewright.pto.text.printer import print_module
from tilewright.pto.verify import verify

TEXTS = [text_of(path) for path in VALID]
WORD = re.compile(r"\s+|[%!#@\"\w.$]+|.", re.DOTALL)
POOL = [word for text in TEXTS for word in WORD.findall(text) if word.strip()]
PER_SEED = 250


def damaged(text: str, random: Random) -> str:
    words = WORD.findall(text)
    for _ in range(random.randint(1, 3)):
        at, other = random.randrange(len(words)), random.randrange(len(words))
        match random.randrange(6):
            case 0:
                words[at] = ""
            case 1:
                words[at] = random.choice(POOL)
            case 2:
                words[at] += random.choice(POOL)
            case 3:
                words[at], words[other] = words[other], words[at]
            case 4:
                words[at : at + 8] = words[at : at + 8] * 2
            case _:
                words[at] = "".join(chr(random.randrange(1, 400)) if random.random() < 0.4 else c for c in words[at])
    return "".join(words)


@pytest.mark.parametrize("seed", range(12))
def test_a_damaged_text_is_read_or_refused_with_a_place(seed: int) -> None:
    random = Random(seed)
    for _ in range(PER_SEED):
        text = damaged(random.choice(TEXTS), random)
        try:
            module = parse(text)
        except KernelError as error:
            assert error.place.is_known and str(error), text
            continue
        again = parse(print_module(module))
        assert same(module, again), text
        assert print_module(again) == print_module(module), text
        try:
            verify(module)
        except KernelError as error:
            assert error.place.is_known and str(error), text


@pytest.mark.parametrize("seed", range(4))
def test_a_cut_text_is_refused_with_a_place(seed: int) -> None:
    random = Random(seed)
    for _ in range(50):
        text = random.choice(TEXTS)
        with pytest.raises(KernelError) as caught:
            parse(text[: random.randrange(text.rindex("}"))])
        assert caught.value.place.is_known


@pytest.mark.parametrize(
    "piece", ["<", "<a>", "<<a>", "%a ", "{", "[", '"', "\\", "//", "-", "!pto.x<", "1e", "#pto<", "("]
)
def test_reading_takes_time_in_proportion_to_the_text(piece: str) -> None:
    start = process_time()
    with pytest.raises(KernelError):
        parse("module attributes {x = " + piece * (60_000 // len(piece)))
    assert process_time() - start < 2
