"""Descriptors on the GPU: they are kept by what they are made of, whatever is done to the memory meanwhile."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from unit.backends.cuda.test_maps import of_any_height

torch: Any = pytest.importorskip("torch")


def factors(rows: int, seed: int) -> tuple[Any, Any]:
    """Return two matrices of whole numbers, whose product is exact."""
    generator = torch.Generator("cuda").manual_seed(seed)
    made = [
        torch.randint(-4, 5, shape, generator=generator, device="cuda").half() for shape in ((rows, 192), (192, 64))
    ]
    return made[0], made[1]


def is_right(a: Any, b: Any) -> bool:
    return bool((of_any_height(a, b) == (a.double() @ b.double())).all())


def test_products_of_several_tensors_in_turn_are_their_own() -> None:
    given = [factors(rows, rows) for rows in (128, 256, 256, 384, 512)]
    assert all(is_right(a, b) for _ in range(20) for a, b in given)


def test_memory_that_is_used_again_is_described_as_it_is_now() -> None:
    places: set[int] = set()
    for turn in range(40):
        a, b = factors((128, 256, 384, 640)[turn % 4], turn)
        places.add(a.data_ptr())
        assert is_right(a, b)
        del a, b
    assert len(places) < 40


def test_a_capture_keeps_the_descriptors_that_it_was_made_with() -> None:
    a, b = factors(256, 1)
    out = of_any_height(a, b)
    stream, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        of_any_height(a, b, out)
    for seed in range(40):
        assert is_right(*factors(384, seed))
    a.copy_(factors(256, 2)[0])
    graph.replay()
    torch.cuda.synchronize()
    assert (out == (a.double() @ b.double())).all()


def test_threads_and_streams_are_given_their_own_descriptors() -> None:
    def work(number: int) -> bool:
        with torch.cuda.stream(torch.cuda.Stream()):
            given = [factors(128 * (1 + number % 3), 10 * number + turn) for turn in range(3)]
            return all(is_right(a, b) for _ in range(20) for a, b in given)

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(8)))
