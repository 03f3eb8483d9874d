"""Long rows of ops that use what came before several times: as much work as there are ops, not as ways lead back."""

from __future__ import annotations

import pytest
from property.deadline import Elsewhere
from unit.backends.cpu.reused import PATTERNS, is_right

SECONDS = 120.0


@pytest.mark.parametrize("name", PATTERNS)
def test_what_is_used_again_is_gone_through_once(name: str) -> None:
    with Elsewhere(is_right) as elsewhere:
        assert elsewhere.within(SECONDS, PATTERNS[name], "u = t @ (u * 2.0)" if name == "what products read" else "")
