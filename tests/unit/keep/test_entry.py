"""Entries: what is written is read, and nothing else is."""

from __future__ import annotations

import itertools
import struct
from hashlib import sha256

import pytest
from unit.keep.payloads import key

from tilewright.keep import payload as entry
from tilewright.keep.miss import Miss
from tilewright.keep.payload import LABEL_BYTES, MAX_TEXT, Entry, Label, decode, encode, file_name, peek

LABEL = Label("artifact", key(1), "softmax", "0.1.0", 1_700_000_000)
SMALL = encode(LABEL, b"some code")
NAMES = ["", "softmax", "a b", "a/b", "../../etc", "line\nbreak", "\x00", "\x1b[31m", "größe", "\ud800", "日本語", "🙂"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("payload", [b"", b"x", SMALL, bytes(100_000)], ids=len)
def test_an_entry_reads_back(name: str, payload: bytes) -> None:
    label = LABEL._replace(name=name)
    assert decode(encode(label, payload)) == Entry(label, payload)


@pytest.mark.parametrize("letter", ["x", "ö", "🙂", "\udfff"])
def test_a_long_name_is_cut_and_still_in_the_first_bytes(letter: str) -> None:
    label = Label("k" * MAX_TEXT, key(1), letter * 70_000, letter * 70_000, 2**64 - 1)
    data = encode(label, b"payload")
    kept = label._replace(name=letter * MAX_TEXT, version=letter * MAX_TEXT)
    assert decode(data) == Entry(kept, b"payload")
    assert peek(data[:LABEL_BYTES]) == kept


def test_a_file_cut_anywhere_is_refused() -> None:
    for length in range(len(SMALL)):
        assert decode(SMALL[:length]) is Miss.LENGTH, length
        assert isinstance(peek(SMALL[:length]), Label | Miss), length


def test_a_changed_byte_anywhere_is_refused() -> None:
    for position, flip in itertools.product(range(len(SMALL)), (0x01, 0x80, 0xFF)):
        damaged = bytearray(SMALL)
        damaged[position] ^= flip
        assert isinstance(decode(bytes(damaged)), Miss), (position, flip)
        assert isinstance(peek(bytes(damaged)), Label | Miss), (position, flip)


WRONG = {
    "nothing": (b"", Miss.LENGTH),
    "something else": (b"\x7fELF" + bytes(200), Miss.MAGIC),
    "zeros": (bytes(200), Miss.MAGIC),
    "a longer file": (SMALL + b"x", Miss.LENGTH),
    "two entries": (SMALL + SMALL, Miss.LENGTH),
    "another format": (SMALL[:4] + b"\x02" + SMALL[5:], Miss.FORMAT),
    "a format with a shorter head": (b"TWCE\x02", Miss.FORMAT),
    "payloads exchanged": (SMALL[:-9] + b"more code", Miss.CHECKSUM),
    "huge sizes": (SMALL[:5] + b"\xff" * 10 + SMALL[15:], Miss.LENGTH),
}


@pytest.mark.parametrize(("data", "reason"), WRONG.values(), ids=WRONG)
def test_other_bytes_are_refused_for_a_reason(data: bytes, reason: Miss) -> None:
    assert decode(data) is reason


@pytest.mark.parametrize("tail", [b"", bytes(39), bytes(40), bytes(40) + b"\xff\xff", bytes(40) + b"\x01\x00\xff"])
def test_a_malformed_label_with_a_right_checksum_is_refused(tail: bytes) -> None:
    head = struct.pack("<4sBHQ", entry.MAGIC, entry.FORMAT, len(tail), 0)
    assert decode(head + sha256(head + tail).digest() + tail) is Miss.LABEL


def test_a_file_is_named_after_key_kind_and_format() -> None:
    assert file_name("artifact", bytes(range(32))) == f"{bytes(range(32)).hex()}.artifact.1"


@pytest.mark.parametrize("kind", ["", "Artifact", "a.b", "../x", "a1", "größe", "a" * 101])
def test_a_kind_is_a_small_word(kind: str) -> None:
    with pytest.raises(ValueError, match="lower-case word"):
        file_name(kind, key(1))


@pytest.mark.parametrize("length", [0, 31, 33])
def test_a_digest_has_256_bits(length: int) -> None:
    with pytest.raises(ValueError, match=f"{length} bytes"):
        file_name("artifact", bytes(length))
