"""Philox 4x32: random words that depend on a key and a counter alone.

Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright.arrays import np
from tilewright.core.region import Array

WORD = 0xFFFFFFFF
MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
INCREMENTS = (0x9E3779B9, 0xBB67AE85)
ROUNDS = (7, 10)
"""How often a block may be mixed."""


def gap(columns: int) -> int:
    """Return how many blocks one row of so many elements is after the one above it."""
    return 64 * (-(-columns // 256) - 1) + (columns - 1) % 64 + 1 if columns else 0


def random_words(key: Sequence[int], counter: Sequence[int], shape: Sequence[int], rounds: int) -> Array:
    """Return the words of a matrix, as uint64."""
    rows, columns = shape
    starts = np.reshape(np.arange(rows, dtype=np.uint64) * np.uint64(gap(columns)), (rows, 1))
    numbers = starts + np.arange(-(-columns // 4), dtype=np.uint64)
    blocks = _mixed(key, _counted(counter, numbers), rounds)
    return np.reshape(np.stack(blocks, axis=-1), (rows, 4 * numbers.shape[1]))[:, :columns]


def _counted(counter: Sequence[int], numbers: Array) -> list[Array]:
    """Return a counter of 128 bits plus some numbers, word by word."""
    words: list[Array] = []
    carry: Any = numbers
    for word in counter:
        low = (carry & np.uint64(WORD)) + np.uint64(word)
        words.append(low & np.uint64(WORD))
        carry = (carry >> np.uint64(32)) + (low >> np.uint64(32))
    return words


def _mixed(key: Sequence[int], block: Sequence[Array], rounds: int) -> Sequence[Array]:
    """Return the words of blocks after so many rounds."""
    first, second = (np.uint64(multiplier) for multiplier in MULTIPLIERS)
    mask, half = np.uint64(WORD), np.uint64(32)
    a, b, c, d = block
    for turn in range(rounds):
        k0, k1 = (np.uint64((word + turn * step) & WORD) for word, step in zip(key, INCREMENTS, strict=True))
        low, high = a * first, c * second
        a, b, c, d = (high >> half) ^ b ^ k0, high & mask, (low >> half) ^ d ^ k1, low & mask
    return a, b, c, d


def drawn_words(seed: int, numbers: Any, stream: int) -> tuple[Array, Array, Array]:
    """Return the pair of words that each numbered element is drawn from, and whether it is the second of the two.

    Four elements share a block, whose counter is a quarter of their numbers and, in its upper half, the stream.
    """
    with np.errstate(over="ignore"):
        block, at = (numbers >> 2).view(np.uint64), numbers & 3
        zero = np.zeros_like(block)
        counter = [block & np.uint64(WORD), block >> np.uint64(32), zero + np.uint64(stream), zero]
        a, b, c, d = _mixed((seed & WORD, (seed >> 32) & WORD), counter, 10)
    late = at >= 2
    return np.where(late, c, a), np.where(late, d, b), at % 2 == 1
